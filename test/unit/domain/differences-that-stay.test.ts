import { describe, expect, it } from "vitest";
import { FINDING_KINDS, mayBeAccepted } from "../../../src/domain/finding.js";
import type { ProviderCharge } from "../../../src/domain/provider.js";
import { compareCharge, type OurCharge } from "../../../src/domain/reconcile.js";

const NOON = new Date("2026-11-29T12:00:00Z");
const MOMENT = { settledBefore: null, keysGoneBefore: NOON, isRestored: false };

describe("a difference that a person may accept", () => {
  it("is one that nothing mends", () => {
    const accepted = FINDING_KINDS.filter((kind) => mayBeAccepted({ kind, ours: null, theirs: null }));
    expect(accepted).toEqual([
      "tenant_missing_here",
      "missing_there",
      "amount_differs",
      "currency_differs",
      "status_unrecognized",
      "second_object",
      "foreign_object",
      "unreadable_object",
      "fee_differs",
      "refund_missing_there",
      "second_refund",
    ]);
  });

  it("is a refund's where it is the amounts that differ, and not what its attempt brings up to date", () => {
    const kind = "refund_differs";
    const of = (amount: number, status: string) => ({ amount, status });
    expect(mayBeAccepted({ kind, ours: of(5, "succeeded"), theirs: of(6, "succeeded") })).toBe(true);
    expect(mayBeAccepted({ kind, ours: of(5, "processing"), theirs: of(5, "succeeded") })).toBe(false);
  });
});

describe("an object for another amount", () => {
  const charge = (status: ProviderCharge["status"]): ProviderCharge => ({
    id: "pi_1",
    status,
    amount: 900,
    currency: "usd",
    amountCapturable: 0,
    amountCaptured: 0,
    livemode: false,
    attemptId: "att_1",
    tenantId: "ten_1",
    nextAction: null,
    failure: null,
    authorizedUntil: null,
    lapsed: false,
    fee: null,
  });
  const owner: OurCharge = {
    tenantId: "ten_1",
    id: "att_1",
    paymentId: "pay_1",
    kind: "charge",
    livemode: false,
    objectId: "pi_1",
    ended: true,
    inWork: false,
    isDue: false,
    status: "failed",
    amount: 4_200,
    currency: "usd",
    amountCaptured: 0,
    amountCapturable: 0,
    hasOpenEffect: false,
    changedAt: NOON,
  };
  const found = (status: ProviderCharge["status"]) =>
    compareCharge(charge(status), { owner, marked: null, isTenantKnown: true }, MOMENT).map(
      ({ kind }) => kind,
    );

  it("is no difference once it is canceled and its payment has ended: nobody can charge it", () => {
    expect(found("canceled")).toEqual([]);
    expect(found("declined")).toEqual(["amount_differs"]);
    expect(found("succeeded")).toContain("amount_differs");
  });
});
