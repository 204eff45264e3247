import { describe, expect, it, test } from "vitest";
import type { ProviderRefund, ProviderRefundStatus } from "../../../src/domain/provider.js";
import {
  compareRefund,
  type OurRefund,
  type RefundCounterpart,
  refundMissingThere,
} from "../../../src/domain/reconcile-after-charge.js";
import type { RefundStatus } from "../../../src/domain/refund.js";
import { before, CHARGE, REFERENCE, SETTLED, words } from "./reconcile-fixtures.js";

const OURS: OurRefund = {
  attempt: { ...REFERENCE, id: "att_2", kind: "refund" },
  refundId: "re_ours",
  providerRefundId: "re_1",
  status: "succeeded",
  amount: 1_000,
  currency: "usd",
  inWork: false,
  isDue: false,
  changedAt: before(60),
};
const THEIRS: ProviderRefund = {
  id: "re_1",
  chargeId: "pi_1",
  status: "succeeded",
  amount: 1_000,
  currency: "usd",
  attemptId: "att_2",
  tenantId: "ten_1",
  failure: null,
};
const MOMENT = { settledBefore: SETTLED, isRestored: false };
const KNOWN: RefundCounterpart = { charge: CHARGE, refund: OURS, marked: OURS.attempt, isTenantKnown: true };
const UNKNOWN: RefundCounterpart = { charge: CHARGE, refund: null, marked: null, isTenantKnown: true };

describe("a refund that is known here", () => {
  const EQUAL: Readonly<Record<ProviderRefundStatus, RefundStatus | null>> = {
    pending: "processing",
    succeeded: "succeeded",
    failed: "failed",
    unrecognized: null,
  };
  const pairs = (Object.keys(EQUAL) as ProviderRefundStatus[]).flatMap((status) =>
    (["processing", "succeeded", "failed", "needs_review"] as const).map((own) => ({ status, own })),
  );
  test.each(pairs)("$status against $own", ({ status, own }) => {
    const found = compareRefund(
      { ...THEIRS, status },
      { ...KNOWN, refund: { ...OURS, status: own } },
      MOMENT,
    );
    const isSame = own === "needs_review" || EQUAL[status] === own;
    expect(words(found)).toEqual(isSame ? [] : ["refund_differs nudge"]);
  });

  it.each<{
    readonly what: string;
    readonly theirs?: Partial<ProviderRefund>;
    readonly ours?: Partial<OurRefund>;
    readonly found: string[];
  }>([
    { what: "another amount", theirs: { amount: 900 }, found: ["refund_differs flag"] },
    { what: "another currency", theirs: { currency: "eur" }, found: ["refund_differs flag"] },
    {
      what: "another status within the lag",
      theirs: { status: "failed" },
      ours: { changedAt: before(1) },
      found: [],
    },
    {
      what: "another status while a worker has it",
      theirs: { status: "failed" },
      ours: { inWork: true },
      found: [],
    },
    {
      what: "a second refund of its attempt",
      ours: { providerRefundId: "re_0" },
      found: ["second_refund flag"],
    },
    {
      what: "a second refund of its attempt that failed",
      theirs: { status: "failed" },
      ours: { providerRefundId: "re_0" },
      found: [],
    },
    {
      what: "one whose id is not known here yet",
      ours: { providerRefundId: null, status: "processing" },
      found: ["refund_differs nudge"],
    },
  ])("$what", ({ theirs = {}, ours = {}, found }) => {
    const counterpart = { ...KNOWN, refund: { ...OURS, ...ours } };
    expect(words(compareRefund({ ...THEIRS, ...theirs }, counterpart, MOMENT))).toEqual(found);
  });

  it("that the provider does not have tells our side, and is asked about", () => {
    expect(refundMissingThere({ ...OURS, providerRefundId: "re_1" })).toMatchObject({
      kind: "refund_missing_there",
      objectId: "re_1",
      theirs: null,
      ours: { refund_id: "re_ours", amount: 1_000, provider_payment_id: "pi_1" },
      repair: { type: "nudge" },
    });
  });
});

describe("a refund that is not known here", () => {
  const unmarked = { attemptId: null, tenantId: null };
  it.each<{
    readonly what: string;
    readonly theirs: Partial<ProviderRefund>;
    readonly counterpart?: Partial<RefundCounterpart>;
    readonly found: string[];
  }>([
    { what: "made by hand", theirs: unmarked, found: ["refund_outside record_refund"] },
    { what: "made by hand and failed", theirs: { ...unmarked, status: "failed" }, found: [] },
    {
      what: "made by hand on somebody else's charge",
      theirs: unmarked,
      counterpart: { charge: null },
      found: [],
    },
    { what: "the release of a hold", theirs: { ...unmarked, releasesHold: true }, found: [] },
    { what: "of an attempt that was lost", theirs: {}, found: ["refund_missing_here rebuild_refund"] },
    {
      what: "of another tenant's attempt",
      theirs: { tenantId: "ten_2" },
      found: ["refund_missing_here flag"],
    },
    {
      what: "of an attempt that is no refund of this payment",
      theirs: {},
      counterpart: { marked: REFERENCE },
      found: ["refund_missing_here flag"],
    },
    {
      what: "whose charge was lost too",
      theirs: {},
      counterpart: { charge: null },
      found: ["refund_missing_here none"],
    },
    {
      what: "of another installation",
      theirs: {},
      counterpart: { charge: null, isTenantKnown: false },
      found: [],
    },
  ])("$what", ({ theirs, counterpart = {}, found }) => {
    const differences = compareRefund({ ...THEIRS, ...theirs }, { ...UNKNOWN, ...counterpart }, MOMENT);
    expect(words(differences)).toEqual(found);
  });

  it.each<{
    readonly what: string;
    readonly theirs: Partial<ProviderRefund>;
    readonly counterpart?: Partial<RefundCounterpart>;
    readonly found: string[];
  }>([
    { what: "of ours", theirs: {}, found: ["refund_missing_here rebuild_refund"] },
    { what: "made by hand", theirs: unmarked, found: [] },
    { what: "of another tenant's attempt", theirs: { tenantId: "ten_2" }, found: [] },
    { what: "of an attempt that stands", theirs: {}, counterpart: { marked: REFERENCE }, found: [] },
  ])("has failed, $what, after a restore: $found", ({ theirs, counterpart = {}, found }) => {
    const restored = { ...MOMENT, isRestored: true };
    const failed = { ...THEIRS, ...theirs, status: "failed" } as const;
    expect(words(compareRefund(failed, { ...UNKNOWN, ...counterpart }, restored))).toEqual(found);
    expect(compareRefund(failed, { ...UNKNOWN, ...counterpart }, MOMENT)).toEqual([]);
  });
});
