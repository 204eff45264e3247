import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createMachine } from "xstate";
import { attemptDiagram, edgesOf, PAGE, paymentDiagram, withDiagrams } from "../../../scripts/diagrams.js";
import { ATTEMPT_STATES } from "../../../src/domain/attempt.js";
import { attemptMachine } from "../../../src/domain/attempt-machine.js";
import { PAYMENT_STATUSES } from "../../../src/domain/payment.js";
import { paymentMachine } from "../../../src/domain/payment-machine.js";
import { packageRoot } from "../../../src/lib/package-root.js";
import {
  asked,
  BUDGET_MS,
  claimed,
  OWN_ACCOUNT,
  REVIEW_AFTER_MS,
  sent,
  UNKNOWN_ACCOUNT,
  viewIn,
} from "./charge-fixtures.js";
import { LOOKUP_OUTCOMES, SEND_OUTCOMES } from "./charge-outcomes.js";

const ROOT = packageRoot();
const page = readFileSync(join(ROOT, PAGE), "utf8");

describe("the diagrams of docs/payment-life.md", () => {
  it("show the machines as they are; if not: npm run diagrams", () => {
    expect(withDiagrams(page)).toBe(page);
  });

  it("have every state and every edge of the payment machine", () => {
    const diagram = paymentDiagram();
    for (const status of PAYMENT_STATUSES) expect(diagram).toMatch(new RegExp(`\\b${status}\\b`));
    expect(diagram).toContain("    processing --> failed: DECLINE<br/>REJECT<br/>NOT_PERFORMED");
    expect(diagram).toContain("    failed --> succeeded: SUCCEED");
    expect(diagram.match(/[A-Z_]{4,}/g)).toHaveLength(edgesOf(paymentMachine).length);
  });

  it("have every state of the attempt machine inside its recovery point, and every edge", () => {
    const diagram = attemptDiagram();
    const inside = (point: string) =>
      new RegExp(`state "recovery point ${point}" as at_${point} \\{([^}]*)\\}`).exec(diagram)?.[1] ?? "";
    const statesOf = (point: string) =>
      inside(point)
        .match(/^ {8}\w+$/gm)
        ?.map((line) => line.trim());
    expect(statesOf("started")).toEqual(["started", "creating", "create_unknown"]);
    expect(statesOf("charge_created")).toEqual(ATTEMPT_STATES.slice(3, 8));
    expect(statesOf("completed")).toEqual(["completed"]);
    expect(diagram).toContain("    at_started --> at_charge_created: OBJECT_KNOWN");
    // Three edges and then eight stand for those of each state of a recovery point.
    const arrows = diagram.match(/--> \w+: [A-Z_]+/g) ?? [];
    expect(arrows.length - 3 + 3 + 3 + 5).toBe(edgesOf(attemptMachine).length);
  });

  it("are not drawn of what they could only show wrongly", () => {
    const partly = createMachine({
      id: "partly",
      initial: "a",
      states: {
        a: { meta: { recoveryPoint: "one" }, on: { GO: "b", END: "c" } },
        b: { meta: { recoveryPoint: "one" } },
        c: { meta: { recoveryPoint: "two" } },
      },
    });
    expect(() => attemptDiagram(partly)).toThrow("END to c leaves one, but not from b");
    const guarded = createMachine({
      id: "guarded",
      initial: "a",
      states: { a: { on: { GO: { target: "a" } } } },
    });
    expect(() => paymentDiagram(guarded)).toThrow("GO in a is no plain edge");
  });

  it("need their markers, once each", () => {
    expect(() => withDiagrams(page.replace("<!-- end of attempt-machine -->", ""))).toThrow(
      "attempt-machine",
    );
    expect(() => withDiagrams(page + page)).toThrow("2 times");
  });
});

describe("npm run diagrams", () => {
  const folder = mkdtempSync(join(tmpdir(), "pawl-diagrams-"));
  const copy = join(folder, PAGE);
  const run = (...parameters: string[]) =>
    spawnSync(
      process.execPath,
      [
        "--import",
        import.meta.resolve("tsx"),
        fileURLToPath(new URL("../../../scripts/diagrams.ts", import.meta.url)),
        ...parameters,
      ],
      { cwd: folder, encoding: "utf8" },
    );

  beforeAll(() => {
    mkdirSync(join(folder, "docs"));
  });
  afterAll(() => {
    rmSync(folder, { recursive: true });
  });

  it("draws what differs, and --check only says so, with exit 1", () => {
    const stale = page.replace("failed --> succeeded: SUCCEED", "failed --> succeeded: WISHED");
    expect(stale).not.toBe(page);
    writeFileSync(copy, stale);
    const checked = run("--check");
    expect(checked).toMatchObject({
      status: 1,
      stderr: expect.stringContaining("npm run diagrams") as unknown,
    });
    expect(readFileSync(copy, "utf8")).toBe(stale);
    expect(run().status).toBe(0);
    expect(readFileSync(copy, "utf8")).toBe(page);
    expect(run("--check").status).toBe(0);
  });
});

describe("docs/payment-life.md", () => {
  it("names only files that there are", () => {
    const named = [...page.matchAll(/`((?:src|workers|scripts|docs)\/[\w./-]+\.\w+)`/g)].map(
      ([, path]) => path ?? "",
    );
    expect(named.length).toBeGreaterThan(10);
    expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });

  it("explains every state, every review, and every reason that a payment can show while it is open", () => {
    const sends = (
      [
        ["creating", "create"],
        ["confirming", "confirm"],
        ["fencing", "fence"],
      ] as const
    ).flatMap(([state, call]) =>
      [1_000, BUDGET_MS].flatMap((afterMs) =>
        SEND_OUTCOMES.map((outcome) => sent(viewIn(state, { afterMs }), call, outcome)),
      ),
    );
    const questions = (["charge_created", "confirm_unknown", "following", "fencing"] as const).flatMap(
      (state) =>
        [1_000, BUDGET_MS, BUDGET_MS + REVIEW_AFTER_MS].flatMap((afterMs) =>
          (["processing", "failed"] as const).flatMap((status) =>
            LOOKUP_OUTCOMES.map((outcome) =>
              asked(viewIn(state, { afterMs, payment: { status, holdsOrderId: false } }), "get", outcome),
            ),
          ),
        ),
    );
    const firsts = (["creating", "confirming"] as const).flatMap((state) => [
      claimed(viewIn(state), OWN_ACCOUNT),
      claimed(viewIn(state), UNKNOWN_ACCOUNT),
      claimed(viewIn(state), { type: "known", accountId: "acct_other", livemode: false }),
    ]);
    const decided = [...sends, ...questions, ...firsts];
    const shown = new Set([
      ...ATTEMPT_STATES,
      ...decided.flatMap(({ attempt, change }) =>
        [attempt.waitReason, change.review].filter((name) => name !== null),
      ),
    ]);
    expect(shown.size).toBeGreaterThan(30);
    expect([...shown].filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
  });
});
