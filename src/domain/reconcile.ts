import { type Difference, NO_REPAIR, type Repair, type Side } from "./finding.js";
import type { PaymentStatus } from "./payment.js";
import type { ChargeStatus, ProviderCharge } from "./provider.js";
import { type AttemptReference, namesAnother } from "./provider-event.js";

/** What we have of a charge: its attempt and its payment. */
export interface OurCharge extends AttemptReference {
  /** Nothing is left to do for the attempt. */
  readonly ended: boolean;
  /** A worker holds the attempt: what it says may change at once. */
  readonly inWork: boolean;
  /** Due now, and no worker has come yet. */
  readonly isDue: boolean;
  readonly status: PaymentStatus;
  readonly amount: number;
  readonly currency: string;
  readonly amountCaptured: number;
  readonly amountCapturable: number;
  /** A capture or cancel is in flight. */
  readonly hasOpenEffect: boolean;
  /** Of the payment. */
  readonly changedAt: Date;
}

/** What we have that may be one provider object's counterpart. */
export interface ChargeCounterpart {
  /** Whose object it is, by its id. */
  readonly owner: OurCharge | null;
  /** Whom its marks name, where nobody owns it. */
  readonly marked: OurCharge | null;
  /** Whether the tenant of its marks exists here: otherwise it is another installation's. */
  readonly isTenantKnown: boolean;
}

/** What changed here after this time is not compared: the provider's answer may be older. Null: everything is. */
export type SettledBefore = Date | null;

/** When a comparison is made, and of which data. */
export interface Moment {
  readonly settledBefore: SettledBefore;
  /** No try of a client's can meet an object from before it any more: the provider's keys of that time are gone. */
  readonly keysGoneBefore: Date;
  /** The database was restored: what is not here, a tenant among it, may have been lost. */
  readonly isRestored: boolean;
}

const SAME_STATUS: Readonly<Record<ChargeStatus, readonly PaymentStatus[]>> = {
  created: ["processing"],
  pending: ["processing"],
  requires_action: ["requires_action"],
  authorized: ["authorized"],
  succeeded: ["succeeded"],
  declined: ["failed"],
  canceled: ["failed", "canceled"],
  unrecognized: [],
};

/** `createdAt`: left out where it is not known. */
type ComparedCharge = ProviderCharge & { readonly createdAt?: Date };

/** How one charge object of the provider differs from what we have. None: it is the same, not ours, or not settled. */
export function compareCharge(
  charge: ComparedCharge,
  { owner, marked, isTenantKnown }: ChargeCounterpart,
  { settledBefore, keysGoneBefore, isRestored }: Moment,
): readonly Difference[] {
  // Read a moment later than the owner, the attempt may have adopted the object in between.
  const own = owner ?? (marked?.objectId === charge.id && marked.kind === "charge" ? marked : null);
  if (own !== null) return compareOwn(charge, own, settledBefore);
  const { attemptId, tenantId, createdAt } = charge;
  if (attemptId === null || tenantId === null) return [];
  if (!isTenantKnown) return isRestored ? ofUnknownTenant(charge) : [];
  if (marked === null || marked.kind !== "charge") {
    const isAbandoned = createdAt !== undefined && createdAt.getTime() < keysGoneBefore.getTime();
    return withoutRow(charge, { attemptId, tenantId }, { isAbandoned, isRestored });
  }
  return compareUnowned(charge, marked, settledBefore);
}

function compareOwn(
  charge: ProviderCharge,
  ours: OurCharge,
  settledBefore: SettledBefore,
): readonly Difference[] {
  const found = (kind: Difference["kind"], detail: string, repair: Repair): Difference => ({
    kind,
    objectId: charge.id,
    tenantId: ours.tenantId,
    paymentId: ours.paymentId,
    ours: ourSide(ours),
    theirs: theirSide(charge),
    detail,
    repair,
  });
  const differences: Difference[] = [];
  if (namesAnother(charge, ours)) {
    const flag = { type: "flag", attempt: ours, reason: "provider_object_foreign" } as const;
    differences.push(found("foreign_object", "the object carries the marks of another payment", flag));
  }
  const mismatch = { type: "flag", attempt: ours, reason: "provider_amount_mismatch" } as const;
  if (charge.currency !== ours.currency) {
    differences.push(found("currency_differs", "the object is in another currency", mismatch));
  } else if (charge.amount !== ours.amount && !isTakenAsItIs(charge, ours)) {
    differences.push(found("amount_differs", "the object is for another amount", mismatch));
  }
  if (charge.status === "unrecognized") {
    const flag = { type: "flag", attempt: ours, reason: "provider_status_unrecognized" } as const;
    return [...differences, found("status_unrecognized", "the object's status is not known here", flag)];
  }
  // A person is looking at it already, or it is on its way.
  if (ours.status === "needs_review" || isMoving(ours, settledBefore)) return differences;
  if (!SAME_STATUS[charge.status].includes(ours.status)) {
    const detail = `the payment is ${ours.status}, the object ${charge.status}`;
    differences.push(found("status_differs", detail, { type: "nudge", attempt: ours }));
  } else if (movedAnotherAmount(charge, ours) && differences.length === 0) {
    differences.push(found("amount_differs", "another amount was captured or is held", mismatch));
  }
  return differences;
}

/**
 * A person has adopted other money than was asked for, and the payment shows just that; or the payment has ended and its
 * object is canceled: nobody can charge it, whatever amount it is for.
 */
function isTakenAsItIs(charge: ProviderCharge, ours: OurCharge): boolean {
  if (charge.status === "canceled" && SAME_STATUS.canceled.includes(ours.status)) return true;
  const isOther = ours.status === "succeeded" && ours.amountCaptured !== ours.amount;
  return isOther && charge.status === "succeeded" && charge.amountCaptured === ours.amountCaptured;
}

function movedAnotherAmount(charge: ProviderCharge, ours: OurCharge): boolean {
  if (charge.status === "succeeded") return charge.amountCaptured !== ours.amountCaptured;
  return charge.status === "authorized" && charge.amountCapturable !== ours.amountCapturable;
}

function ofUnknownTenant(charge: ComparedCharge): readonly Difference[] {
  if (charge.status === "canceled" || charge.status === "created") return [];
  return [
    {
      kind: "tenant_missing_here",
      objectId: charge.id,
      tenantId: charge.tenantId,
      paymentId: null,
      ours: null,
      theirs: lostSide(charge),
      detail: "no row here names its tenant: lost with the backup, or another installation's",
      repair: NO_REPAIR,
    },
  ];
}

/** Our marks, and no row here: lost with a backup or a failover. What never charged and never will is not told. */
function withoutRow(
  charge: ComparedCharge,
  marks: { readonly attemptId: string; readonly tenantId: string },
  { isAbandoned, isRestored }: { readonly isAbandoned: boolean; readonly isRestored: boolean },
): readonly Difference[] {
  if (charge.status === "canceled") return [];
  const found = (kind: Difference["kind"], detail: string, repair: Repair): readonly Difference[] => [
    {
      kind,
      objectId: charge.id,
      tenantId: marks.tenantId,
      paymentId: null,
      ours: null,
      theirs: lostSide(charge),
      detail,
      repair,
    },
  ];
  // After a restore a confirm may be under way whose row was lost, so it is made again and closed.
  if (charge.status !== "created" || (isRestored && !isAbandoned)) {
    const detail = "no row here names the attempt; `pawl recover` takes it in";
    return found("missing_here", detail, { type: "rebuild_payment" });
  }
  return isAbandoned
    ? found("orphaned_object", "no row here names the attempt", { type: "cancel_object", ...marks })
    : found(
        "orphaned_object",
        "no row here names the attempt; its client's next try may adopt it",
        NO_REPAIR,
      );
}

/** Its attempt is here, and this is not (or not yet) the attempt's object. */
function compareUnowned(
  charge: ProviderCharge,
  marked: OurCharge,
  settledBefore: SettledBefore,
): readonly Difference[] {
  if (charge.status === "canceled" || isMoving(marked, settledBefore)) return [];
  const found = (kind: Difference["kind"], detail: string, repair: Repair): readonly Difference[] => [
    {
      kind,
      objectId: charge.id,
      tenantId: marked.tenantId,
      paymentId: marked.paymentId,
      ours: ourSide(marked),
      theirs: theirSide(charge),
      detail,
      repair,
    },
  ];
  const mayAdopt = marked.objectId === null && !marked.ended;
  if (charge.status === "created" && !mayAdopt) {
    const detail = "left by a create whose answer came too late; nobody confirms it";
    const { id: attemptId, tenantId } = marked;
    return found("orphaned_object", detail, { type: "cancel_object", attemptId, tenantId });
  }
  if (marked.objectId === null) {
    const detail = `the payment is ${marked.status} without an object, this one is ${charge.status}`;
    return found("status_differs", detail, { type: "nudge", attempt: marked });
  }
  const flag = { type: "flag", attempt: marked, reason: "provider_object_stray" } as const;
  return found("second_object", `the attempt has another object; this one is ${charge.status}`, flag);
}

/** Our row's object, which the provider says it does not have. */
export function missingThere(ours: OurCharge & { readonly objectId: string }): Difference {
  return {
    kind: "missing_there",
    objectId: ours.objectId,
    tenantId: ours.tenantId,
    paymentId: ours.paymentId,
    ours: ourSide(ours),
    theirs: null,
    detail: "the provider does not have the payment's object",
    repair: { type: "nudge", attempt: ours },
  };
}

export function unreadableObject(objectId: string, ours: OurCharge): Difference {
  return {
    kind: "unreadable_object",
    objectId,
    tenantId: ours.tenantId,
    paymentId: ours.paymentId,
    ours: ourSide(ours),
    theirs: null,
    detail: "the provider shows the object in a form that this version cannot read",
    repair: NO_REPAIR,
  };
}

/** Still at work, or changed so lately that the provider's list may be older. */
export function isMoving(
  ours: { readonly inWork: boolean; readonly hasOpenEffect?: boolean; readonly changedAt: Date },
  settledBefore: SettledBefore,
): boolean {
  const isYoung = settledBefore !== null && ours.changedAt.getTime() > settledBefore.getTime();
  return ours.inWork || ours.hasOpenEffect === true || isYoung;
}

function ourSide(ours: OurCharge): Side {
  return {
    status: ours.status,
    amount: ours.amount,
    currency: ours.currency,
    amount_captured: ours.amountCaptured,
    amount_capturable: ours.amountCapturable,
    provider_payment_id: ours.objectId,
  };
}

/** What a row would be made again from begins with when its object was made. */
function lostSide(charge: ComparedCharge): Side {
  return { ...theirSide(charge), created_at: charge.createdAt?.toISOString() ?? null };
}

function theirSide(charge: ProviderCharge): Side {
  return {
    status: charge.status,
    amount: charge.amount,
    currency: charge.currency,
    amount_captured: charge.amountCaptured,
    amount_capturable: charge.amountCapturable,
    payment_attempt_id: charge.attemptId,
  };
}
