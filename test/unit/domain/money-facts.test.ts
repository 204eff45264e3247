import { describe, expect, it } from "vitest";
import { type LedgerEntry, type MoneyFact, postingsOf } from "../../../src/domain/ledger.js";
import { moneyFactsOf } from "../../../src/domain/money-facts.js";
import type { ProviderFee } from "../../../src/domain/provider.js";
import { asked, type Decided, found, object, sent, viewIn } from "./charge-fixtures.js";
import { EFFECT_CASES } from "./effect-cases.js";
import {
  EFFECT_AMOUNT,
  effectAsked,
  effectSent,
  effectView,
  PROVIDER_REFUND_ID,
  REFUND_ID,
  refundFound,
  refundMade,
} from "./effect-fixtures.js";
import { balancesOf } from "./ledger-sums.js";

type From = Parameters<typeof moneyFactsOf>[0];
const factsOf = (view: From, decided: Decided) => moneyFactsOf(view, decided.change, decided);

const usd = { currency: "usd" };
const FEE: ProviderFee = { transactionId: "txn_1", amount: 152, currency: "eur" };
const HELD = { status: "authorized", captureMethod: "manual", amountCapturable: 4200 } as const;
const SUCCEEDED = { refund: { status: "succeeded", providerRefundId: PROVIDER_REFUND_ID } } as const;
const FAILED = { refund: { status: "failed", providerRefundId: PROVIDER_REFUND_ID } } as const;

/** Every way in which money moves for a charge, capture, cancel or refund, and what is posted for it. */
const MOVES: readonly {
  readonly name: string;
  readonly facts: () => readonly MoneyFact[];
  readonly are: readonly MoneyFact[];
}[] = [
  {
    name: "a charge that succeeds at once",
    facts: () => ofCharge("confirming", (view) => sent(view, "confirm", object("succeeded", { fee: FEE }))),
    are: [
      { type: "captured", amount: 4200, authorized: 0, ...usd },
      { type: "fee", ...FEE },
    ],
  },
  {
    name: "a charge that is held",
    facts: () => ofCharge("confirming", (view) => sent(view, "confirm", object("authorized"))),
    are: [{ type: "authorized", occurrence: 2, amount: 4200, ...usd }],
  },
  {
    name: "a failed payment that is paid after all",
    facts: () =>
      ofCharge("fencing", (view) => asked(view, "get", found("succeeded")), {
        payment: { status: "failed" },
      }),
    are: [{ type: "captured", amount: 4200, authorized: 0, ...usd }],
  },
  {
    name: "an authorisation that lapses",
    facts: () =>
      ofCharge("following", (view) => asked(view, "get", found("canceled", { lapsed: true })), {
        payment: HELD,
      }),
    are: [{ type: "released", occurrence: 2, amount: 4200, ...usd }],
  },
  {
    name: "an authorisation that is captured elsewhere, in part",
    facts: () =>
      ofCharge("following", (view) => asked(view, "get", found("succeeded", { amountCaptured: 900 })), {
        payment: HELD,
      }),
    are: [{ type: "captured", amount: 900, authorized: 4200, ...usd }],
  },
  {
    name: "a capture of a part, whose rest is released",
    facts: () =>
      ofEffect("capture", "sending", (view) =>
        effectSent(view, object("succeeded", { amountCaptured: EFFECT_AMOUNT, fee: FEE })),
      ),
    are: [
      { type: "captured", amount: EFFECT_AMOUNT, authorized: 4200, ...usd },
      { type: "fee", ...FEE },
    ],
  },
  {
    name: "a cancel",
    facts: () => ofEffect("cancel", "sending", (view) => effectSent(view, object("canceled"))),
    are: [{ type: "released", occurrence: 2, amount: 4200, ...usd }],
  },
  {
    name: "a cancel of a payment that waits for its customer",
    facts: () =>
      ofEffect("cancel", "sending", (view) => effectSent(view, object("canceled")), {
        payment: { status: "requires_action", amountCapturable: 0 },
      }),
    are: [],
  },
  {
    name: "a refund that is done",
    facts: () => ofEffect("refund", "sending", (view) => effectSent(view, refundMade("succeeded"))),
    are: [{ type: "refunded", refundId: REFUND_ID, occurrence: 2, amount: EFFECT_AMOUNT, ...usd }],
  },
  {
    name: "a refund that is on its way",
    facts: () => ofEffect("refund", "sending", (view) => effectSent(view, refundMade("pending"))),
    are: [],
  },
  {
    name: "a refund that fails before it was done",
    facts: () => ofEffect("refund", "sending", (view) => effectSent(view, refundMade("failed"))),
    are: [],
  },
  {
    name: "a refund that fails after it was done",
    facts: () =>
      ofEffect(
        "refund",
        "completed",
        (view) => effectAsked(view, "get_refund", refundFound("failed")),
        SUCCEEDED,
      ),
    are: [{ type: "refund_failed", refundId: REFUND_ID, occurrence: 2, amount: EFFECT_AMOUNT, ...usd }],
  },
  {
    name: "a refund that was made after all",
    facts: () =>
      ofEffect(
        "refund",
        "completed",
        (view) => effectAsked(view, "get_refund", refundFound("succeeded")),
        FAILED,
      ),
    are: [{ type: "refunded", refundId: REFUND_ID, occurrence: 2, amount: EFFECT_AMOUNT, ...usd }],
  },
  {
    name: "a look that finds nothing new",
    facts: () => ofCharge("following", (view) => asked(view, "get", found("authorized")), { payment: HELD }),
    are: [],
  },
];

function ofCharge(
  state: Parameters<typeof viewIn>[0],
  decide: (view: From) => Decided,
  scene: Parameters<typeof viewIn>[1] = {},
): readonly MoneyFact[] {
  const view = viewIn(state, scene);
  return factsOf(view, decide(view));
}

function ofEffect(
  kind: Parameters<typeof effectView>[0],
  state: Parameters<typeof effectView>[1],
  decide: (view: From) => Decided,
  scene: Parameters<typeof effectView>[2] = {},
): readonly MoneyFact[] {
  const view = effectView(kind, state, scene);
  return factsOf(view, decide(view));
}

describe("what is posted for", () => {
  it.each(MOVES)("$name", ({ facts, are }) => {
    expect(facts()).toEqual(are);
  });

  it("a refund that is done, fails, and is done again has a name of its own each time", () => {
    const entries: LedgerEntry[] = [];
    let view = effectView("refund", "following", { refund: { providerRefundId: PROVIDER_REFUND_ID } });
    for (const status of ["succeeded", "failed", "succeeded"] as const) {
      const decided = effectAsked(view, "get_refund", refundFound(status));
      entries.push(...factsOf(view, decided).flatMap(postingsOf));
      view = decided.view;
    }
    expect(new Set(entries.map(({ fact, leg }) => `${fact}/${leg}`)).size).toBe(3);
    expect(balancesOf(entries, "usd").refunds).toBe(EFFECT_AMOUNT);
  });
});

describe("in every case of a capture, cancel or refund", () => {
  it("what is posted is the difference between the amounts before and after it, to the last unit", () => {
    const moved = EFFECT_CASES.filter(({ applied }) => applied.paymentMoved);
    expect(moved.length).toBeGreaterThan(1_000);
    for (const { view, change, applied } of moved) {
      const { amountCapturable, amountCaptured, amountRefunded } = applied.payment;
      const balances = balancesOf(moneyFactsOf(view, change, applied).flatMap(postingsOf), "usd");
      expect([
        balances.authorized ?? 0,
        0 - (balances.sales ?? 0),
        balances.refunds ?? 0,
        balances.provider_balance ?? 0,
      ]).toEqual([
        amountCapturable - view.payment.amountCapturable,
        amountCaptured - view.payment.amountCaptured,
        amountRefunded - view.payment.amountRefunded,
        amountCaptured - view.payment.amountCaptured - (amountRefunded - view.payment.amountRefunded),
      ]);
    }
  });

  it("nothing is posted where nothing is written", () => {
    const still = EFFECT_CASES.filter(({ applied }) => !applied.paymentMoved && !applied.refundMoved);
    expect(still.length).toBeGreaterThan(1_000);
    for (const { view, change, applied } of still) expect(moneyFactsOf(view, change, applied)).toEqual([]);
  });
});
