import { describe, expect, it, test } from "vitest";
import type { Difference } from "../../../src/domain/finding.js";
import { PAYMENT_STATUSES, type PaymentStatus } from "../../../src/domain/payment.js";
import type { ChargeStatus, ListedCharge } from "../../../src/domain/provider.js";
import {
  type ChargeCounterpart,
  compareCharge,
  missingThere,
  type OurCharge,
  unreadableObject,
} from "../../../src/domain/reconcile.js";

const NOON = new Date("2026-11-29T12:00:00Z");
const before = (minutes: number) => new Date(NOON.getTime() - minutes * 60_000);
const MOMENT = { settledBefore: before(5), keysGoneBefore: before(24 * 60), isRestored: false };

const OURS: OurCharge = {
  tenantId: "ten_1",
  id: "att_1",
  paymentId: "pay_1",
  kind: "charge",
  livemode: false,
  objectId: "pi_1",
  ended: true,
  inWork: false,
  isDue: false,
  status: "succeeded",
  amount: 4_200,
  currency: "usd",
  amountCaptured: 4_200,
  amountCapturable: 0,
  hasOpenEffect: false,
  changedAt: before(60),
};
const THEIRS: ListedCharge = {
  id: "pi_1",
  status: "succeeded",
  amount: 4_200,
  currency: "usd",
  amountCapturable: 0,
  amountCaptured: 4_200,
  livemode: false,
  attemptId: "att_1",
  tenantId: "ten_1",
  nextAction: null,
  failure: null,
  authorizedUntil: null,
  lapsed: false,
  fee: null,
  createdAt: before(60),
  captureMethod: "automatic",
  paymentMethod: "pm_1",
  customer: null,
  description: null,
};
const NOBODY: ChargeCounterpart = { owner: null, marked: null, isTenantKnown: true };
const ours = (changes: Partial<OurCharge> = {}): OurCharge => ({ ...OURS, ...changes });
const theirs = (changes: Partial<ListedCharge> = {}): ListedCharge => ({ ...THEIRS, ...changes });
const owned = (changes: Partial<OurCharge> = {}): ChargeCounterpart => ({ ...NOBODY, owner: ours(changes) });
const marked = (changes: Partial<OurCharge>): ChargeCounterpart => ({ ...NOBODY, marked: ours(changes) });

/** As short words: `kind repair`. */
function words(found: readonly Difference[]): string[] {
  return found.map(({ kind, repair }) => `${kind} ${repair.type}`);
}

const EQUAL: Readonly<Record<ChargeStatus, readonly PaymentStatus[]>> = {
  created: ["processing"],
  pending: ["processing"],
  requires_action: ["requires_action"],
  authorized: ["authorized"],
  succeeded: ["succeeded"],
  declined: ["failed"],
  canceled: ["failed", "canceled"],
  unrecognized: [],
};
const STATUSES = Object.keys(EQUAL) as ChargeStatus[];

describe("a payment and its own object", () => {
  const pairs = STATUSES.flatMap((status) => PAYMENT_STATUSES.map((payment) => ({ status, payment })));
  test.each(pairs)("$status against $payment", ({ status, payment }) => {
    const found = compareCharge(
      theirs({ status, amountCaptured: 0 }),
      owned({ status: payment, amountCaptured: 0 }),
      MOMENT,
    );
    if (status === "unrecognized") expect(words(found)).toEqual(["status_unrecognized flag"]);
    else if (payment === "needs_review" || EQUAL[status].includes(payment)) expect(found).toEqual([]);
    else expect(words(found)).toEqual(["status_differs nudge"]);
  });

  it.each<{
    readonly what: string;
    readonly theirs: Partial<ListedCharge>;
    readonly ours?: Partial<OurCharge>;
    readonly found: string[];
  }>([
    { what: "another amount", theirs: { amount: 4_300 }, found: ["amount_differs flag"] },
    {
      what: "an amount that is no whole number of ours",
      theirs: { amount: null },
      found: ["amount_differs flag"],
    },
    {
      what: "another currency, whatever the amount",
      theirs: { currency: "eur", amount: 1 },
      found: ["currency_differs flag"],
    },
    {
      what: "another amount that was captured",
      theirs: { amountCaptured: 4_000 },
      found: ["amount_differs flag"],
    },
    {
      what: "another amount that is held",
      theirs: { status: "authorized", amountCapturable: 4_000, amountCaptured: 0 },
      ours: { status: "authorized", amountCapturable: 4_200, amountCaptured: 0 },
      found: ["amount_differs flag"],
    },
    {
      what: "another amount, that a person has taken as it was captured",
      theirs: { amount: 5_000, amountCaptured: 5_000 },
      ours: { amountCaptured: 5_000 },
      found: [],
    },
    {
      what: "another amount, of which other money was captured than a person has taken",
      theirs: { amount: 5_000, amountCaptured: 5_000 },
      ours: { amountCaptured: 4_900 },
      found: ["amount_differs flag"],
    },
    { what: "another attempt's marks", theirs: { attemptId: "att_2" }, found: ["foreign_object flag"] },
    { what: "another tenant's marks", theirs: { tenantId: "ten_2" }, found: ["foreign_object flag"] },
    { what: "no marks at all", theirs: { attemptId: null, tenantId: null }, found: [] },
    {
      what: "another amount while a person looks already",
      theirs: { amount: 4_300 },
      ours: { status: "needs_review" },
      found: ["amount_differs flag"],
    },
  ])("$what", ({ theirs: changes, ours: own = {}, found }) => {
    expect(words(compareCharge(theirs(changes), owned(own), MOMENT))).toEqual(found);
  });

  it.each<{ readonly what: string; readonly ours: Partial<OurCharge>; readonly settled: boolean }>([
    { what: "a worker holds the attempt", ours: { inWork: true }, settled: false },
    { what: "a capture or cancel is in flight", ours: { hasOpenEffect: true }, settled: false },
    { what: "the payment changed within the lag", ours: { changedAt: before(4) }, settled: false },
    { what: "the payment changed before the lag", ours: { changedAt: before(6) }, settled: true },
    { what: "the attempt is due, and no worker comes", ours: { isDue: true }, settled: true },
  ])("is compared by its status only where it is settled: $what", ({ ours: changes, settled }) => {
    const found = compareCharge(theirs({ status: "canceled" }), owned(changes), MOMENT);
    expect(words(found)).toEqual(settled ? ["status_differs nudge"] : []);
  });

  it("is compared however lately it changed where nothing is taken for settled", () => {
    const moment = { ...MOMENT, settledBefore: null };
    const found = compareCharge(theirs({ status: "canceled" }), owned({ changedAt: NOON }), moment);
    expect(words(found)).toEqual(["status_differs nudge"]);
  });

  it("is its own also where the attempt adopted it between two reads", () => {
    expect(compareCharge(theirs(), marked({}), MOMENT)).toEqual([]);
  });

  it("shows both sides, in the minor unit, beside the payment that they are of", () => {
    expect(compareCharge(theirs({ amount: 4_300 }), owned(), MOMENT)).toMatchObject([
      {
        objectId: "pi_1",
        tenantId: "ten_1",
        paymentId: "pay_1",
        ours: { status: "succeeded", amount: 4_200, currency: "usd", amount_captured: 4_200 },
        theirs: { status: "succeeded", amount: 4_300, currency: "usd", payment_attempt_id: "att_1" },
      },
    ]);
  });
});

describe("an object whose attempt no row here names", () => {
  test.each(STATUSES)("%s", (status) => {
    const found = words(compareCharge(theirs({ status }), NOBODY, MOMENT));
    if (status === "canceled") expect(found).toEqual([]);
    else if (status === "created") expect(found).toEqual(["orphaned_object none"]);
    else expect(found).toEqual(["missing_here rebuild_payment"]);
  });

  it("is canceled where nobody confirmed it and no key of its time is known any more", () => {
    const old = theirs({ status: "created", createdAt: before(25 * 60) });
    expect(compareCharge(old, NOBODY, MOMENT)).toMatchObject([
      { repair: { type: "cancel_object", attemptId: "att_1", tenantId: "ten_1" } },
    ]);
    const { createdAt: _made, ...ageless } = old;
    expect(words(compareCharge(ageless, NOBODY, MOMENT))).toEqual(["orphaned_object none"]);
  });

  it.each<Partial<ListedCharge>>([
    { attemptId: null },
    { tenantId: null },
    { attemptId: null, tenantId: null },
  ])("is none of ours without both marks: %j", (changes) => {
    expect(compareCharge(theirs(changes), NOBODY, MOMENT)).toEqual([]);
  });

  it.each<[ChargeStatus, number, string[]]>([
    ["created", 60, ["missing_here rebuild_payment"]],
    ["created", 25 * 60, ["orphaned_object cancel_object"]],
    ["canceled", 60, []],
    ["succeeded", 60, ["missing_here rebuild_payment"]],
  ])(
    "is made again after a restore where it may still move money: %s, %d minutes old",
    (status, age, found) => {
      const restored = { ...MOMENT, isRestored: true };
      expect(words(compareCharge(theirs({ status, createdAt: before(age) }), NOBODY, restored))).toEqual(
        found,
      );
    },
  );

  it("is another installation's where its tenant does not exist here", () => {
    expect(compareCharge(theirs(), { ...NOBODY, isTenantKnown: false }, MOMENT)).toEqual([]);
  });

  test.each(STATUSES)(
    "%s of a tenant that is not here is told after a restore, where money is in question",
    (status) => {
      const restored = { ...MOMENT, isRestored: true };
      const found = compareCharge(theirs({ status }), { ...NOBODY, isTenantKnown: false }, restored);
      const isHarmless = status === "canceled" || status === "created";
      expect(words(found)).toEqual(isHarmless ? [] : ["tenant_missing_here none"]);
    },
  );
});

describe("an object with the marks of an attempt that has another, or none", () => {
  const other = { objectId: "pi_other" };
  const none = { objectId: null };
  it.each<{
    readonly what: string;
    readonly status: ChargeStatus;
    readonly ours: Partial<OurCharge>;
    readonly found: string[];
  }>([
    {
      what: "of an attempt with another object",
      status: "created",
      ours: other,
      found: ["orphaned_object cancel_object"],
    },
    {
      what: "of an attempt with another object that is still open",
      status: "created",
      ours: { ...other, ended: false },
      found: ["orphaned_object cancel_object"],
    },
    {
      what: "of an attempt that ended without one",
      status: "created",
      ours: none,
      found: ["orphaned_object cancel_object"],
    },
    {
      what: "of an attempt that may still adopt it",
      status: "created",
      ours: { ...none, ended: false },
      found: ["status_differs nudge"],
    },
    {
      what: "of an attempt that is at work",
      status: "created",
      ours: { ...none, ended: false, inWork: true },
      found: [],
    },
    {
      what: "of an attempt that ended without one",
      status: "succeeded",
      ours: none,
      found: ["status_differs nudge"],
    },
    {
      what: "of an attempt with another object",
      status: "succeeded",
      ours: other,
      found: ["second_object flag"],
    },
    {
      what: "of an attempt with another object",
      status: "authorized",
      ours: other,
      found: ["second_object flag"],
    },
    {
      what: "of an attempt with another object",
      status: "pending",
      ours: other,
      found: ["second_object flag"],
    },
    { what: "of an attempt with another object", status: "canceled", ours: other, found: [] },
    { what: "of an attempt that ended without one", status: "canceled", ours: none, found: [] },
  ])("$status, $what", ({ status, ours: changes, found }) => {
    expect(words(compareCharge(theirs({ status }), marked(changes), MOMENT))).toEqual(found);
  });

  it("of a refund is a charge that no row here names", () => {
    const found = compareCharge(theirs(), marked({ kind: "refund", objectId: "pi_other" }), MOMENT);
    expect(words(found)).toEqual(["missing_here rebuild_payment"]);
  });
});

test("what the provider does not have, or shows unreadably, tells our side alone", () => {
  const charge = { ...OURS, objectId: "pi_1" };
  expect(missingThere(charge)).toMatchObject({
    kind: "missing_there",
    theirs: null,
    ours: { status: "succeeded" },
    repair: { type: "nudge", attempt: charge },
  });
  expect(unreadableObject("pi_1", charge)).toMatchObject({ kind: "unreadable_object", theirs: null });
});
