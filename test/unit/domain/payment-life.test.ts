import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createMachine } from "xstate";
import { attemptDiagram, edgesOf, PAGE, statusDiagram, withDiagrams } from "../../../scripts/diagrams.js";
import { ATTEMPT_STATES } from "../../../src/domain/attempt.js";
import { attemptMachine } from "../../../src/domain/attempt-machine.js";
import { effectMachine } from "../../../src/domain/effect-machine.js";
import { paymentMachine } from "../../../src/domain/payment-machine.js";
import { refundMachine } from "../../../src/domain/refund-machine.js";
import { packageRoot } from "../../../src/lib/package-root.js";
import {
  asked,
  BUDGET_MS,
  claimed,
  found,
  OWN_ACCOUNT,
  REVIEW_AFTER_MS,
  sent,
  UNKNOWN_ACCOUNT,
  viewIn,
} from "./charge-fixtures.js";
import { LOOKUP_OUTCOMES, SEND_OUTCOMES } from "./charge-outcomes.js";
import { EFFECT_CASES } from "./effect-cases.js";

const ROOT = packageRoot();
const page = readFileSync(join(ROOT, PAGE), "utf8");

type Machine = Parameters<typeof edgesOf>[0];
const told = ({ from, event, to }: { from: string; event: string; to: string }) => `${from} ${event} ${to}`;
const pointOf = (machine: Machine, state: string) =>
  (machine.states[state]?.config.meta as { recoveryPoint: string }).recoveryPoint;

/** The states that a diagram shows inside each composite. */
function insidesOf(diagram: string): Map<string, string[]> {
  const composites = diagram.matchAll(/state "recovery point (\w+)" as at_\1 \{([^}]*)\}/g);
  return new Map(
    [...composites].map(([, point = "", inside = ""]) => [
      point,
      [...inside.matchAll(/^ +(\w+)$/gm)].map(([, state = ""]) => state),
    ]),
  );
}

/** The edges that a diagram shows, sorted: one from a composite stands for one of each of its states. */
function edgesIn(diagram: string): string[] {
  const insides = insidesOf(diagram);
  const entryOf = (point: string) =>
    new RegExp(`as at_${point} \\{\\s*\\[\\*\\] --> (\\w+)`).exec(diagram)?.[1] ?? "";
  return [...diagram.matchAll(/^ +(\w+) --> (\w+): (.+)$/gm)]
    .flatMap(([, from = "", to = "", label = ""]) =>
      label.split("<br/>").flatMap((one) => {
        const [event = "", named] = one.split(" to ");
        const target = named ?? (to.startsWith("at_") ? entryOf(to.slice(3)) : to);
        const sources = from.startsWith("at_") ? (insides.get(from.slice(3)) ?? []) : [from];
        return sources.map((source) => told({ from: source, event, to: target }));
      }),
    )
    .sort();
}

describe("the diagrams of docs/payment-life.md", () => {
  it("show the machines as they are; if not: npm run diagrams", () => {
    expect(withDiagrams(page)).toBe(page);
  });

  it.each([paymentMachine, refundMachine])(
    "have every status and every edge of the $id machine, and nothing else",
    (machine) => {
      const diagram = statusDiagram(machine);
      expect(edgesIn(diagram)).toEqual(edgesOf(machine).map(told).sort());
      for (const status of Object.keys(machine.states))
        expect(diagram).toMatch(new RegExp(`\\b${status}\\b`));
      expect(page).toContain(diagram);
    },
  );

  it.each([attemptMachine, effectMachine])(
    "have every state and every edge of the $id machine, each state inside its recovery point",
    (machine) => {
      const diagram = attemptDiagram(machine);
      const shown = [...insidesOf(diagram)].flatMap(([point, states]) =>
        states.map((state) => [state, point]),
      );
      expect(shown).toEqual(Object.keys(machine.states).map((state) => [state, pointOf(machine, state)]));
      expect(edgesIn(diagram)).toEqual(edgesOf(machine).map(told).sort());
      expect(page).toContain(diagram);
    },
  );

  it("end where no edge leads out: a refund can fail late, and a charge's attempt be looked at again", () => {
    const ends = (diagram: string) => [...diagram.matchAll(/(\w+) --> \[\*\]/g)].map(([, state]) => state);
    expect(ends(statusDiagram(paymentMachine))).toEqual(["succeeded"]);
    expect(ends(attemptDiagram(effectMachine))).toEqual(["at_completed"]);
    expect(ends(attemptDiagram(attemptMachine))).toEqual([]);
    expect(ends(statusDiagram(refundMachine))).toEqual([]);
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
    const apart = createMachine({
      id: "apart",
      initial: "a",
      states: { a: { meta: { recoveryPoint: "one" } }, b: { meta: { recoveryPoint: "two" } } },
    });
    expect(() => attemptDiagram(apart)).toThrow("nothing leads to two");
    const guarded = createMachine({
      id: "guarded",
      initial: "a",
      states: { a: { on: { GO: { target: "a" } } } },
    });
    expect(() => statusDiagram(guarded)).toThrow("GO in a is no plain edge");
  });

  it.each(["payment", "attempt", "effect", "refund"])("need the markers of the %s machine, once", (name) => {
    expect(() => withDiagrams(page.replace(`<!-- end of ${name}-machine -->`, ""))).toThrow(
      `${name}-machine`,
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
    const held = { status: "authorized", openEffect: "att_capture" } as const;
    const inFlight = asked(viewIn("following", { payment: held }), "get", found("canceled"));
    const decided = [inFlight, ...sends, ...questions, ...firsts];
    const shown = new Set([
      ...ATTEMPT_STATES,
      ...decided.flatMap(({ attempt, change }) => [attempt.waitReason, change.review]),
      ...EFFECT_CASES.flatMap(({ applied, change }) => [applied.attempt.waitReason, change.review]),
    ]);
    expect(shown.size).toBeGreaterThan(30);
    expect([...shown].filter((name) => name !== null && !page.includes(`\`${name}\``))).toEqual([]);
  });
});
