import type { ProviderRefund } from "./provider.js";
import type { AttemptReference } from "./provider-event.js";
import type { ReviewReason } from "./review-reason.js";

/** What can differ between our rows and the provider's objects. What each means: docs/reconciliation.md. */
export const FINDING_KINDS = [
  /** The provider has an object with our marks, and no row here names it. */
  "missing_here",
  /** As before, and not even its tenant is here: lost with a backup, or another installation's. Told by a recovery alone. */
  "tenant_missing_here",
  /** A row here names an object that the provider does not have. */
  "missing_there",
  "amount_differs",
  "currency_differs",
  "status_differs",
  /** The provider shows a status that this version does not know. */
  "status_unrecognized",
  /** Money moved, or may yet, on a second object of one attempt. */
  "second_object",
  /** An object of ours that nobody confirms and no attempt can adopt any more. It charges nothing. */
  "orphaned_object",
  /** A payment's object that carries another payment's marks. */
  "foreign_object",
  /** An object of ours that this version cannot read. */
  "unreadable_object",
  /** What the provider kept, as our books have it. */
  "fee_differs",
  "refund_missing_here",
  "refund_missing_there",
  /** A second refund of one attempt. */
  "second_refund",
  /** Made by hand at the provider and not recorded. */
  "refund_outside",
  "refund_differs",
  "dispute_differs",
  /** The provider tells that it could not deliver this event. */
  "event_undelivered",
] as const;
export type FindingKind = (typeof FINDING_KINDS)[number];

/** `accepted`: it stands, and a person has said that it may. */
export type FindingState = "open" | "repaired" | "gone" | "accepted";

/** One side of a difference, as it is shown. Amounts are in the minor unit of the currency beside them. */
export type Side = Readonly<Record<string, string | number | boolean | null>>;

/** One difference between our rows and the provider's objects. Kind and object name it, however often it is seen. */
export interface Difference {
  readonly kind: FindingKind;
  /** The provider's object; of a fee its balance transaction. */
  readonly objectId: string;
  readonly tenantId: string | null;
  readonly paymentId: string | null;
  readonly ours: Side | null;
  readonly theirs: Side | null;
  /** One sentence for a person. */
  readonly detail: string;
  readonly repair: Repair;
}

/** What is provable, and done without a person; each may be done any number of times with the effect of once. */
export type Repair =
  | { readonly type: "none" }
  /** The attempt is due now, and asks the provider itself. */
  | { readonly type: "nudge"; readonly attempt: AttemptReference }
  | { readonly type: "cancel_object"; readonly attemptId: string; readonly tenantId: string }
  /** A review of the payment opens. */
  | { readonly type: "flag"; readonly attempt: AttemptReference; readonly reason: ReviewReason }
  | {
      readonly type: "record_refund";
      readonly charge: AttemptReference;
      readonly refund: ProviderRefund;
    }
  | { readonly type: "record_dispute"; readonly disputeId: string }
  /** Only while the database recovers: its rows may be older than the provider's objects. */
  | { readonly type: "rebuild_payment" }
  | {
      readonly type: "rebuild_refund";
      readonly charge: AttemptReference;
      readonly refund: ProviderRefund;
    };

export const NO_REPAIR: Repair = { type: "none" };

/** Kinds that mend themselves once they are found. One of another kind that is no longer seen is gone, and nobody mended it. */
const MENDED: ReadonlySet<FindingKind> = new Set([
  "missing_here",
  "status_differs",
  "orphaned_object",
  "fee_differs",
  "refund_missing_here",
  "refund_outside",
  "refund_differs",
  "dispute_differs",
  "event_undelivered",
]);

/**
 * Whether a person may accept a difference as it is: what nothing here mends. What a repair or `pawl recover` mends is not
 * to be talked away, and a refund's is where its amounts are what differs.
 */
export function mayBeAccepted({ kind, ours, theirs }: Pick<Difference, "kind" | "ours" | "theirs">): boolean {
  if (kind === "fee_differs") return true;
  if (kind === "refund_differs") return ours?.["amount"] !== theirs?.["amount"];
  return !MENDED.has(kind);
}

/** One of each: kind and object name a difference, and two movements of money may tell of the same. The last counts. */
export function distinct<Found extends Pick<Difference, "kind" | "objectId">>(
  found: readonly Found[],
): readonly Found[] {
  return [...new Map(found.map((one) => [`${one.kind} ${one.objectId}`, one])).values()];
}

/** What a finding is once it is no longer there. */
export function closedAs(kind: FindingKind): FindingState {
  return MENDED.has(kind) ? "repaired" : "gone";
}
