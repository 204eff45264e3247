import { beforeEach, expect, test, vi } from "vitest";
import type { ChargeView } from "../../src/domain/charge-change.js";
import type * as ChargeFacts from "../../src/domain/charge-facts.js";
import type * as ChargeSteps from "../../src/domain/charge-steps.js";
import type * as Reconcile from "../../src/domain/reconcile.js";
import type * as ReviewDecisions from "../../src/domain/review-decisions.js";
import type * as Advance from "../../src/store/advance.js";
import type * as ReviewStore from "../../src/store/reviews.js";
import { BROKEN_TIMEOUT_MS, NOT_SEEN, useFirstFault } from "./first-fault.js";

/** Which rule is taken out of the product in this test. */
const broken = vi.hoisted(() => ({ rule: "none" }));

vi.mock("../../src/domain/charge-steps.js", async (original) => {
  const real = await original<typeof ChargeSteps>();
  const firstStep: typeof real.firstStep = (view, account, markedNow) => {
    const own = view.attempt.providerAccount;
    return broken.rule === "account" && account.type === "known" && own !== null
      ? real.firstStep(view, { ...account, accountId: own }, markedNow)
      : real.firstStep(view, account, markedNow);
  };
  return { ...real, firstStep };
});

vi.mock("../../src/store/advance.js", async (original) => {
  const real = await original<typeof Advance>();
  const advanceAttempts: typeof real.advanceAttempts = async (db, rows) => {
    const advanced = await real.advanceAttempts(db, rows);
    if (broken.rule === "audit")
      await db`update reviews set resolution_reason = null where closed_at is not null`;
    return advanced;
  };
  return { ...real, advanceAttempts };
});

vi.mock("../../src/domain/review-decisions.js", async (original) => {
  const real = await original<typeof ReviewDecisions>();
  const decideFirst: typeof real.decideFirst = (view, account, markedNow) =>
    real.decideFirst(withoutInstruction(view), account, markedNow);
  const decideAfterLookup: typeof real.decideAfterLookup = (view, question, outcome) =>
    real.decideAfterLookup(withoutInstruction(view), question, outcome);
  return { ...real, decideFirst, decideAfterLookup };

  function withoutInstruction(view: ChargeView): ChargeView {
    return broken.rule === "instruction"
      ? { ...view, attempt: { ...view.attempt, instruction: null } }
      : view;
  }
});

vi.mock("../../src/store/reviews.js", async (original) => {
  const real = await original<typeof ReviewStore>();
  const readReview: typeof real.readReview = async (db, name) => {
    if (broken.rule === "one_decision")
      await db`update reviews set resolution = null where id = ${name.id} and closed_at is null`;
    return real.readReview(db, name);
  };
  return { ...real, readReview };
});

vi.mock("../../src/domain/charge-facts.js", async (original) => {
  const real = await original<typeof ChargeFacts>();
  const adopt: typeof real.adopt = (view, charge, note) => {
    const amount = broken.rule === "amounts" ? (charge.amount ?? view.payment.amount) : view.payment.amount;
    return real.adopt({ ...view, payment: { ...view.payment, amount } }, charge, note);
  };
  return { ...real, adopt };
});

vi.mock("../../src/domain/reconcile.js", async (original) => {
  const real = await original<typeof Reconcile>();
  const compareCharge: typeof real.compareCharge = (charge, counterpart, moment) =>
    real
      .compareCharge(charge, counterpart, moment)
      .map((difference) =>
        broken.rule === "orphans" && difference.repair.type === "cancel_object"
          ? { ...difference, repair: { type: "none" as const } }
          : difference,
      );
  return { ...real, compareCharge };
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
    title: "a decision that no worker carries out is seen",
    rule: "instruction",
    from: 8,
    sign: /was decided, and nobody carries it out/,
  },
  {
    title: "a review that does not keep why it was decided is seen",
    rule: "audit",
    from: 4,
    sign: /keeps a decision that nobody made/,
  },
  {
    title: "a review that takes two decisions at once is seen",
    rule: "one_decision",
    from: 13,
    sign: /decisions were accepted/,
  },
  {
    title: "another amount than asked for that is taken without a person is seen",
    rule: "amounts",
    from: 13,
    sign: /is for another amount, and nobody was asked/,
  },
  {
    title: "an attempt that goes on with another account's credential is seen",
    rule: "account",
    from: 1,
    sign: /was sent to acct_\w+, and made for another/,
  },
  {
    title: "an object that nobody confirms and no comparison cancels is seen",
    rule: "orphans",
    from: 4,
    sign: /the comparison shows orphaned_object/,
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
