import { describe, expect, test } from "vitest";
import { createLogger, redactText } from "../../../src/lib/log.js";

/** What a log call writes. */
function written(say: (log: ReturnType<typeof createLogger>) => void): string {
  const lines: string[] = [];
  say(createLogger({ level: "trace", destination: { write: (line: string) => void lines.push(line) } }));
  return lines.join("");
}

describe("no log line shows", () => {
  test.each([
    ["a provider key", "sk_live_51Habc123DEF", "51Habc123DEF"],
    ["a restricted key", "rk_test_51Habc123DEF", "51Habc123DEF"],
    ["an API key", "pawl_test_0a1b_2c3d_secretpart-xyz", "secretpart"],
    ["a webhook secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "MfKQ9r8G"],
    ["a client secret", "pi_3Abc_secret_Xyz789", "Xyz789"],
    ["a database password", "postgres://pawl:hunter2@db.internal:5432/pawl", "hunter2"],
    ["a card number", "paid with 4242 4242 4242 4242 today", "4242 4242"],
  ])("%s", (_what, text, secret) => {
    expect(redactText(text)).not.toContain(secret);
    expect(written((log) => log.info({ detail: text }, text))).not.toContain(secret);
    expect(written((log) => log.error({ err: new Error(text) }, "failed"))).not.toContain(secret);
  });

  test("the SQL and parameters of a failed query", () => {
    const error = new Error("Failed query: select * from payments where description = $1\nparams: marked");
    const line = written((log) => log.error({ err: error }, "failed"));
    expect(line).not.toContain("select");
    expect(line).not.toContain("marked");
  });

  test("headers, bodies and parameters, wherever they stand in what is logged", () => {
    const line = written((log) =>
      log.info({ headers: { a: "marked" }, request: { body: "marked", parameters: "marked" } }, "request"),
    );
    expect(line).not.toContain("marked");
  });
});

test("ids of payments, amounts and times stay readable", () => {
  const text = "pay_01a2283ea55f77d784c99161273ed9c2 999999999999 usd 2026-11-29T16:58:43.936Z";
  expect(redactText(text)).toBe(text);
});
