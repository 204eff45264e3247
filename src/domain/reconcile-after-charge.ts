import type { KeptDispute } from "./dispute.js";
import { type Difference, NO_REPAIR, type Repair, type Side } from "./finding.js";
import type { LedgerEntry } from "./ledger.js";
import type { ListedTransaction, ProviderDispute, ProviderRefund, ProviderRefundStatus } from "./provider.js";
import type { AttemptReference } from "./provider-event.js";
import { isMoving, type Moment, type OurCharge, type SettledBefore } from "./reconcile.js";
import type { RefundStatus } from "./refund.js";
import type { ReviewReason } from "./review-reason.js";

/** What we have of a refund, and the attempt that follows it. */
export interface OurRefund {
  readonly attempt: AttemptReference;
  readonly refundId: string;
  readonly providerRefundId: string | null;
  readonly status: RefundStatus;
  readonly amount: number;
  readonly currency: string;
  readonly inWork: boolean;
  readonly isDue: boolean;
  readonly changedAt: Date;
}

export interface RefundCounterpart {
  /** Of the charge object that was refunded; null: it is none of ours. */
  readonly charge: OurCharge | null;
  /** By the provider's id, else by its marks. */
  readonly refund: OurRefund | null;
  /** The attempt that its marks name. */
  readonly marked: AttemptReference | null;
  readonly isTenantKnown: boolean;
}

const SAME_REFUND_STATUS: Readonly<Record<ProviderRefundStatus, RefundStatus | null>> = {
  pending: "processing",
  succeeded: "succeeded",
  failed: "failed",
  unrecognized: null,
};

/**
 * How one refund of the provider differs from what we have. A hold that was released is no refund. One that has failed and
 * is not here tells nothing, but after a restore: then it is what its key must meet.
 */
export function compareRefund(
  theirs: ProviderRefund,
  { charge, refund, marked, isTenantKnown }: RefundCounterpart,
  { settledBefore, isRestored }: Pick<Moment, "settledBefore" | "isRestored">,
): readonly Difference[] {
  if (theirs.releasesHold === true) return [];
  if (refund !== null) return compareKnownRefund(theirs, refund, settledBefore);
  const found = (kind: Difference["kind"], detail: string, repair: Repair): readonly Difference[] => [
    {
      kind,
      objectId: theirs.id,
      tenantId: charge?.tenantId ?? theirs.tenantId,
      paymentId: charge?.paymentId ?? null,
      ours: null,
      theirs: refundSide(theirs),
      detail,
      repair,
    },
  ];
  if (charge === null) {
    const mayBeOurs = theirs.attemptId !== null && isTenantKnown;
    return mayBeOurs
      ? found("refund_missing_here", "neither it nor its charge is known here", NO_REPAIR)
      : [];
  }
  const isOurs = theirs.attemptId !== null && marked === null && theirs.tenantId === charge.tenantId;
  // Nothing was given back, and nothing will be.
  if (theirs.status === "failed" && !(isOurs && isRestored)) return [];
  if (theirs.attemptId === null) {
    const record = { type: "record_refund", charge, refund: theirs } as const;
    return found("refund_outside", "made outside Pawl and not recorded", record);
  }
  if (isOurs) {
    const rebuild = { type: "rebuild_refund", charge, refund: theirs } as const;
    return found("refund_missing_here", "no row here names its attempt; `pawl recover` takes it in", rebuild);
  }
  return found("refund_missing_here", "its marks name what is not a refund of this payment", {
    type: "flag",
    attempt: charge,
    reason: "provider_object_foreign",
  });
}

function compareKnownRefund(
  theirs: ProviderRefund,
  ours: OurRefund,
  settledBefore: SettledBefore,
): readonly Difference[] {
  const isItsOwn = ours.providerRefundId === null || ours.providerRefundId === theirs.id;
  const found = (detail: string, repair: Repair): readonly Difference[] => [
    {
      kind: isItsOwn ? "refund_differs" : "second_refund",
      objectId: theirs.id,
      tenantId: ours.attempt.tenantId,
      paymentId: ours.attempt.paymentId,
      ours: ourRefundSide(ours),
      theirs: refundSide(theirs),
      detail,
      repair,
    },
  ];
  const flag = (reason: ReviewReason) => ({ type: "flag", attempt: ours.attempt, reason }) as const;
  if (!isItsOwn) {
    if (theirs.status === "failed") return [];
    return found(
      `its attempt has another refund; this one is ${theirs.status}`,
      flag("provider_object_stray"),
    );
  }
  if (theirs.amount !== ours.amount || theirs.currency !== ours.currency) {
    return found("the amounts differ", flag("provider_amount_mismatch"));
  }
  if (ours.status === "needs_review" || isMoving(ours, settledBefore)) return [];
  if (SAME_REFUND_STATUS[theirs.status] === ours.status) return [];
  const nudge = { type: "nudge", attempt: ours.attempt } as const;
  return found(`ours is ${ours.status}, the provider's ${theirs.status}`, nudge);
}

export function refundMissingThere(ours: OurRefund & { readonly providerRefundId: string }): Difference {
  return {
    kind: "refund_missing_there",
    objectId: ours.providerRefundId,
    tenantId: ours.attempt.tenantId,
    paymentId: ours.attempt.paymentId,
    ours: ourRefundSide(ours),
    theirs: null,
    detail: "the provider does not have the refund",
    repair: { type: "nudge", attempt: ours.attempt },
  };
}

/** How one dispute differs from what its payment shows. `kept`: null where it was never heard of. */
export function compareDispute(
  theirs: ProviderDispute,
  charge: OurCharge | null,
  kept: KeptDispute | null,
  settledBefore: SettledBefore,
): readonly Difference[] {
  if (charge === null) return [];
  const readAt = kept === null ? null : new Date(kept.read_at);
  if (readAt !== null && isMoving({ inWork: false, changedAt: readAt }, settledBefore)) return [];
  const known = new Set(kept?.movements.map(({ transactionId }) => transactionId));
  const isSame =
    kept !== null &&
    kept.status === theirs.status &&
    kept.amount === theirs.amount &&
    kept.currency === theirs.currency &&
    theirs.movements.every(({ transactionId }) => known.has(transactionId));
  return isSame ? [] : [disputeDiffers(theirs.id, charge, kept, theirs)];
}

function disputeDiffers(
  disputeId: string,
  charge: OurCharge,
  kept: KeptDispute | null,
  theirs: ProviderDispute | null,
): Difference {
  return {
    kind: "dispute_differs",
    objectId: disputeId,
    tenantId: charge.tenantId,
    paymentId: charge.paymentId,
    ours: kept === null ? null : disputeSide(kept),
    theirs: theirs === null ? null : disputeSide(theirs),
    detail: kept === null ? "the dispute is not recorded" : "the dispute has moved on at the provider",
    repair: { type: "record_dispute", disputeId },
  };
}

/** What our books have under the facts that a movement of the provider's balance may have made. */
export interface TransactionCounterpart {
  readonly charge: OurCharge | null;
  /** Of a refund: whether its row is here, and where it stands. */
  readonly refund: OurRefund | null;
  /** Of a dispute: what its payment shows. */
  readonly kept: KeptDispute | null;
  /** The first entry of the fact of `feeFactOf`. */
  readonly fee: Pick<LedgerEntry, "currency" | "debitAccount" | "amount"> | null;
}

/** What has to be done about one movement of the provider's balance. */
export type TransactionVerdict =
  | { readonly type: "same" }
  | { readonly type: "differs"; readonly difference: Difference }
  /** Its object tells more: it is fetched and compared as those of the lists are. */
  | { readonly type: "look"; readonly at: "charge" | "refund"; readonly objectId: string };

const SAME: TransactionVerdict = { type: "same" };

/**
 * A movement of the balance against our books. It is what finds late news of an old object: a capture, a refund that
 * came back, the end of a dispute.
 */
export function compareTransaction(
  transaction: ListedTransaction,
  { charge, refund, kept, fee }: TransactionCounterpart,
  settledBefore: SettledBefore,
): TransactionVerdict {
  if (charge === null || transaction.of.type === "other") return SAME;
  const { of } = transaction;
  switch (of.type) {
    case "charge":
      return charge.status === "succeeded" || charge.status === "needs_review"
        ? compareCapture(transaction, charge, fee, settledBefore)
        : { type: "look", at: "charge", objectId: objectOf(charge) };
    case "refund": {
      const isCurrent = refund !== null && (!of.isReversal || refund.status === "failed");
      return isCurrent ? SAME : { type: "look", at: "refund", objectId: of.refundId };
    }
    case "dispute": {
      const isKnown = kept?.movements.some(({ transactionId }) => transactionId === transaction.id) ?? false;
      return isKnown
        ? SAME
        : { type: "differs", difference: disputeDiffers(of.disputeId, charge, kept, null) };
    }
  }
}

/** A movement's charge is found by its object, so it has one. */
function objectOf({ id, objectId }: OurCharge): string {
  if (objectId === null) throw new Error(`charge ${id} was found by its object and has none`);
  return objectId;
}

function compareCapture(
  transaction: ListedTransaction,
  charge: OurCharge,
  fee: TransactionCounterpart["fee"],
  settledBefore: SettledBefore,
): TransactionVerdict {
  if (isMoving(charge, settledBefore)) return SAME;
  // Where the balance has another currency, its amount says nothing of the payment's.
  const isComparable = transaction.currency === charge.currency;
  if (isComparable && transaction.amount !== charge.amountCaptured) {
    return { type: "look", at: "charge", objectId: objectOf(charge) };
  }
  const difference = compareFee(transaction, charge, fee);
  return difference === null ? SAME : { type: "differs", difference };
}

/** The fee of a charge's transaction against the entry of its fact. Null: they are the same. */
export function compareFee(
  { id, fee: theirs, currency }: Pick<ListedTransaction, "id" | "fee" | "currency">,
  charge: OurCharge,
  entry: TransactionCounterpart["fee"],
): Difference | null {
  const posted = entry === null ? 0 : entry.debitAccount === "provider_fees" ? entry.amount : -entry.amount;
  if (posted === theirs && (entry === null || entry.currency === currency)) return null;
  return {
    kind: "fee_differs",
    objectId: id,
    tenantId: charge.tenantId,
    paymentId: charge.paymentId,
    ours: entry === null ? null : { fee: posted, currency: entry.currency },
    theirs: { fee: theirs, currency, provider_payment_id: charge.objectId },
    detail: entry === null ? "the fee is not in the books" : "the books have another fee",
    repair: entry === null ? { type: "nudge", attempt: charge } : NO_REPAIR,
  };
}

function refundSide({ status, amount, currency, chargeId, attemptId }: ProviderRefund): Side {
  return { status, amount, currency, provider_payment_id: chargeId, payment_attempt_id: attemptId };
}

function ourRefundSide({ refundId, status, amount, currency, attempt }: OurRefund): Side {
  return { refund_id: refundId, status, amount, currency, provider_payment_id: attempt.objectId };
}

function disputeSide(dispute: Pick<ProviderDispute, "status" | "amount" | "currency" | "movements">): Side {
  const { status, amount, currency, movements } = dispute;
  return { status, amount, currency, movements: movements.length };
}
