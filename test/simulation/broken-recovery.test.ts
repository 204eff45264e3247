import { beforeEach, expect, test, vi } from "vitest";
import type * as AskOnly from "../../src/operations/ask-only.js";
import type * as RebuildRows from "../../src/operations/rebuild-rows.js";
import type * as Recovery from "../../src/store/recovery.js";
import { BROKEN_TIMEOUT_MS, NOT_SEEN, useFirstFault } from "./first-fault.js";

/** Which rule is taken out of the product in this test. */
const broken = vi.hoisted(() => ({ rule: "none" }));

vi.mock("../../src/operations/ask-only.js", async (original) => {
  const real = await original<typeof AskOnly>();
  const askOnlyWhile: typeof real.askOnlyWhile = (isRecovering, provider, retryAfterMs) =>
    broken.rule === "ask_only" ? provider : real.askOnlyWhile(isRecovering, provider, retryAfterMs);
  return { ...real, askOnlyWhile };
});

vi.mock("../../src/operations/rebuild-rows.js", async (original) => {
  const real = await original<typeof RebuildRows>();
  const rebuildPayment: typeof real.rebuildPayment = (held, charge) =>
    broken.rule === "rebuilt_payments" ? Promise.resolve(true) : real.rebuildPayment(held, charge);
  const rebuildRefund: typeof real.rebuildRefund = (held, charge, found) =>
    broken.rule === "rebuilt_refunds" ? Promise.resolve(true) : real.rebuildRefund(held, charge, found);
  return { ...real, rebuildPayment, rebuildRefund };
});

vi.mock("../../src/store/recovery.js", async (original) => {
  const real = await original<typeof Recovery>();
  const hasRecovered: typeof real.hasRecovered = (db) =>
    broken.rule === "searched_runs" ? db`false` : real.hasRecovered(db);
  return { ...real, hasRecovered };
});

const firstFault = useFirstFault();

/** Each rule, the sign of its absence, and the seed from which it shows. */
const BROKEN: readonly {
  readonly title: string;
  readonly rule: string;
  readonly from: number;
  readonly sign: RegExp;
}[] = [
  {
    title: "a send while the database recovers is seen",
    rule: "ask_only",
    from: 10,
    sign: /was sent by \w+ while the database recovers/,
  },
  {
    title: "a payment that was lost with its row and is not made again is seen",
    rule: "rebuilt_payments",
    from: 34,
    sign: /^pi_\d+ moved money, and the recovery has not taken it in/,
  },
  {
    title: "a refund that was lost with its row and is not made again is seen",
    rule: "rebuilt_refunds",
    from: 66,
    sign: /^re_\d+ moved money, and the recovery has not taken it in/,
  },
  {
    title: "a key that was paid in a later run, was lost, and is accepted from its first is seen",
    rule: "searched_runs",
    from: 10,
    sign: /both hold money of \w+ payments\.create/,
  },
];

beforeEach(() => {
  broken.rule = "none";
});

for (const { title, rule, from, sign } of BROKEN) {
  test(
    title,
    async () => {
      broken.rule = rule;
      const found = await firstFault(from, sign);
      expect(found).not.toMatch(NOT_SEEN);
      expect(found).toMatch(sign);
    },
    BROKEN_TIMEOUT_MS,
  );
}
