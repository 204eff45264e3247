import { describe, expect, test } from "vitest";
import { createLogger, errorText, redactText } from "../../../src/lib/log.js";

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

test.each([
  ["one word", "x".repeat(300_000)],
  ["one address after the other", "a://b:c".repeat(50_000)],
  ["groups of digits", "4242-".repeat(60_000)],
  ["beginnings of keys", "pi_sk_live_whsec_pawl_test_".repeat(12_000)],
])("a long text from outside is looked through once, and keeps nobody waiting: %s", (_what, text) => {
  expect(redactText(text).length).toBeGreaterThan(0);
});

/** As postgres.js makes them. */
const CLIENT_ERRORS = [
  {
    what: "a connection that is lost",
    error: Object.assign(new Error("write CONNECTION_CLOSED db.marked:42603"), {
      code: "CONNECTION_CLOSED",
      errno: "CONNECTION_CLOSED",
      address: "db.marked",
      port: 42603,
    }),
    facts: { type: "Error", code: "CONNECTION_CLOSED" },
  },
  {
    what: "a name that is not known",
    error: Object.assign(new Error("getaddrinfo ENOTFOUND db.marked"), {
      code: "ENOTFOUND",
      syscall: "getaddrinfo",
      hostname: "db.marked",
    }),
    facts: { type: "Error", code: "ENOTFOUND" },
  },
  {
    what: "a certificate of another host",
    error: Object.assign(new Error("Host: db.marked. is not in the cert's altnames"), {
      code: "ERR_TLS_CERT_ALTNAME_INVALID",
      host: "db.marked",
    }),
    facts: { type: "Error", code: "ERR_TLS_CERT_ALTNAME_INVALID" },
  },
  {
    what: "a statement that is refused",
    error: Object.assign(new Error('duplicate key value violates "marked"'), {
      name: "PostgresError",
      severity: "ERROR",
      code: "23505",
      detail: "Key (key)=(marked) already exists.",
      table_name: "idempotency_keys",
      constraint_name: "idempotency_keys_pkey",
      query: "insert into marked",
      parameters: ["marked"],
    }),
    facts: {
      type: "PostgresError",
      code: "23505",
      table: "idempotency_keys",
      constraint: "idempotency_keys_pkey",
    },
  },
];

describe("of an error of the database's client", () => {
  test.each(CLIENT_ERRORS)(
    "a log line has what names it and where, and no more: $what",
    ({ error, facts }) => {
      for (const logged of [
        error,
        Object.assign(new Error("Failed query: marked", { cause: error }), {
          query: "marked",
          params: ["marked"],
        }),
        new Error("the database cannot be reached", { cause: error }),
      ]) {
        const line = written((log) => log.warn({ err: logged }, "failed"));
        expect(line).not.toMatch(/marked|42603/);
        const { type: _type, ...named } = facts;
        const shown = (JSON.parse(line) as { err: Record<string, unknown> }).err;
        expect(shown).toMatchObject(named);
        expect(shown["stack"]).toMatch(/^ {4}at /);
        expect(shown["cause"] ?? shown).toMatchObject(facts);
      }
    },
  );

  test.each(CLIENT_ERRORS)("a text has as little: $what", ({ error, facts }) => {
    expect(errorText(error)).toBe(
      [facts.type, facts.code, facts.constraint, facts.table].filter((fact) => fact !== undefined).join(" "),
    );
  });
});

test("of an error of our own a log line has the message and the stack's first frames", () => {
  const error = new Error("a balance is gone\nsecond line");
  const { err } = JSON.parse(written((log) => log.error({ err: error }, "failed"))) as {
    err: Record<string, string>;
  };
  expect(err).toMatchObject({ type: "Error", message: "a balance is gone\nsecond line" });
  expect(err["stack"]).toMatch(/^ {4}at .*log\.test\.ts/);
  expect(err["stack"]).not.toContain("second line");
  expect(errorText(error)).toBe("Error: a balance is gone\nsecond line");
});

test("ids of payments, amounts and times stay readable", () => {
  const text = "pay_01a2283ea55f77d784c99161273ed9c2 999999999999 usd 2026-11-29T16:58:43.936Z";
  expect(redactText(text)).toBe(text);
});
