import type { MoneyFact } from "./ledger.js";
import type { Dispute } from "./payment.js";
import type { DisputeMovement, DisputeStatus, ProviderDispute } from "./provider.js";

/** A dispute as its payment's row keeps it: what is shown, and what the next reading is compared with. */
export interface KeptDispute extends Dispute {
  readonly status: DisputeStatus;
  /** When it was first heard of here, RFC 3339. */
  readonly opened_at: string;
  /** The database's time of the write: a reading that began later is newer than this one. */
  readonly read_at: string;
  readonly movements: readonly DisputeMovement[];
  /** What the books have as its loss; left out while none was ever posted. */
  readonly loss?: PostedLoss;
}

interface PostedLoss {
  /** In the currency of the first movement. */
  readonly amount: number;
  /** How often it was posted: a loss is taken back where an appeal is heard. */
  readonly postings: number;
}

export type DisputeEventType =
  | "dispute.opened"
  | "dispute.updated"
  | "dispute.funds_withdrawn"
  | "dispute.funds_reinstated"
  | "dispute.won"
  | "dispute.lost"
  | "dispute.closed";

/** What the provider says of a dispute now, with a status and an amount that we understand. */
export interface DisputeReading extends Omit<ProviderDispute, "status" | "amount"> {
  readonly status: DisputeStatus;
  readonly amount: number;
}

export type DisputeAdvance =
  | {
      readonly type: "advanced";
      readonly dispute: KeptDispute;
      /** Every dispute of the payment, in the order they were heard of. */
      readonly disputes: readonly KeptDispute[];
      readonly events: readonly DisputeEventType[];
      readonly facts: readonly MoneyFact[];
    }
  | { readonly type: "unchanged" }
  /** Which of two readings is the older cannot be told: read again. */
  | { readonly type: "read_again" };

/** How far a dispute has come where two readings cannot be put in order by time. */
const RANKS: Readonly<Record<DisputeStatus, number>> = {
  warning: 0,
  open: 1,
  under_review: 2,
  won: 3,
  lost: 3,
  closed: 3,
};

/**
 * What a reading of the provider's dispute changes. A reading that began after the kept one was written is the truth,
 * also where it goes back (a lost dispute under appeal). One that began before may be older, so it only leads forward.
 * Movements of funds are a set that only grows. So any order and any number of readings end alike.
 */
export function advanceDispute(
  disputes: readonly KeptDispute[],
  reading: DisputeReading,
  times: { readonly beganAt: Date; readonly now: Date },
): DisputeAdvance {
  const known = disputes.find((dispute) => dispute.id === reading.id) ?? null;
  const fresh = reading.movements.filter(
    ({ transactionId }) => known?.movements.every((one) => one.transactionId !== transactionId) ?? true,
  );
  const face = known === null ? "newer" : compare(known, reading, times.beganAt);
  if (face === "unordered") return { type: "read_again" };
  if (face !== "newer" && fresh.length === 0) return { type: "unchanged" };
  const shown = known === null || face === "newer" ? reading : known;
  const movements = [...(known?.movements ?? []), ...fresh.map(movementOf)];
  const posted = postedLossOf(known);
  const lost = lossOf(shown.status, movements);
  const loss = lost === posted.amount ? posted : { amount: lost, postings: posted.postings + 1 };
  const dispute: KeptDispute = {
    id: reading.id,
    status: shown.status,
    amount: shown.amount,
    currency: shown.currency,
    reason: shown.reason,
    opened_at: known?.opened_at ?? times.now.toISOString(),
    read_at: times.now.toISOString(),
    movements,
    ...(loss.postings === 0 ? {} : { loss }),
  };
  return {
    type: "advanced",
    dispute,
    disputes:
      known === null
        ? [...disputes, dispute]
        : disputes.map((one) => (one.id === dispute.id ? dispute : one)),
    events: [
      ...(known === null ? (["dispute.opened"] as const) : []),
      ...fresh.flatMap(movementEvent),
      ...statusEvent(known, dispute),
    ],
    facts: [
      ...fresh.map((movement) => movementFact(dispute.id, movement)),
      ...lossFact(dispute, loss.amount - posted.amount),
    ],
  };
}

function compare(
  known: KeptDispute,
  reading: DisputeReading,
  beganAt: Date,
): "newer" | "same" | "older" | "unordered" {
  const isSame =
    known.status === reading.status &&
    known.amount === reading.amount &&
    known.currency === reading.currency &&
    known.reason === reading.reason;
  if (isSame) return "same";
  if (beganAt.getTime() > Date.parse(known.read_at)) return "newer";
  const ahead = RANKS[reading.status] - RANKS[known.status];
  return ahead > 0 ? "newer" : ahead < 0 ? "older" : "unordered";
}

/** The members that are kept, whatever else the adapter's object has. */
function movementOf({ transactionId, amount, currency, fee }: DisputeMovement): DisputeMovement {
  return { transactionId, amount, currency, fee };
}

function movementEvent({ amount }: DisputeMovement): DisputeEventType[] {
  if (amount === 0) return [];
  return [amount < 0 ? "dispute.funds_withdrawn" : "dispute.funds_reinstated"];
}

/** The end of a dispute is told by its name; what comes before it is told as an update, the opening apart. */
function statusEvent(known: KeptDispute | null, dispute: KeptDispute): DisputeEventType[] {
  const { status } = dispute;
  const moved = known?.status !== status;
  switch (status) {
    case "won":
    case "lost":
    case "closed":
      if (moved) return [`dispute.${status}`];
      break;
    case "warning":
    case "open":
    case "under_review":
      if (known === null) return [];
  }
  const isShownAnew =
    known !== null && (moved || known.amount !== dispute.amount || known.reason !== dispute.reason);
  return isShownAnew ? ["dispute.updated"] : [];
}

function movementFact(disputeId: string, movement: DisputeMovement): MoneyFact {
  const { transactionId, amount, fee, currency } = movement;
  return { type: "dispute_movement", disputeId, transactionId, amount, fee, currency };
}

/** What a lost dispute took and did not give back, in the currency that it was taken in. */
function lossOf(status: DisputeStatus, movements: readonly DisputeMovement[]): number {
  const currency = movements[0]?.currency;
  if (status !== "lost") return 0;
  const taken = movements
    .filter((movement) => movement.currency === currency)
    .reduce((sum, movement) => sum - movement.amount, 0);
  return Math.max(0, taken);
}

/** One that was kept before this was counted has had its loss posted once, if it is lost. */
function postedLossOf(known: KeptDispute | null): PostedLoss {
  if (known?.loss !== undefined) return known.loss;
  const amount = known === null ? 0 : lossOf(known.status, known.movements);
  return { amount, postings: amount === 0 ? 0 : 1 };
}

function lossFact({ id, movements, loss }: KeptDispute, amount: number): MoneyFact[] {
  const currency = movements[0]?.currency;
  if (amount === 0 || loss === undefined || currency === undefined) return [];
  return [{ type: "dispute_lost", disputeId: id, occurrence: loss.postings, amount, currency }];
}

/** The dispute as it is shown. */
export function disputeDocument(dispute: Dispute): { readonly [name in keyof Dispute]: Dispute[name] } {
  const { id, status, amount, currency, reason } = dispute;
  return { id, status, amount, currency, reason };
}

/** Statuses in which the money is the bank's to decide about, or is gone. */
const HOLDS_MONEY: ReadonlySet<string> = new Set<DisputeStatus>(["open", "under_review", "lost"]);

/**
 * Whether a refund would pay twice what a dispute takes or has taken. An inquiry (`warning`) holds no money, and a
 * refund is what ends it well; after `won` and `closed` the money is the merchant's again.
 * Source: docs.stripe.com/disputes/how-disputes-work, `is_charge_refundable` of the SDK's typings.
 */
export function hasOpenDispute(disputes: readonly Dispute[]): boolean {
  return disputes.some(({ status }) => HOLDS_MONEY.has(status));
}
