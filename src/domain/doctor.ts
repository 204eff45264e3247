import { HELD_LOOK_MS, LONGEST_WAIT_MS } from "./charge-decisions.js";
import { waitAfter } from "./webhook.js";

/**
 * What must hold of our rows at every commit, so that a look at any moment, under any load, finds it. What each means and
 * what to do about it: docs/doctor.md.
 */
export const INVARIANTS = {
  two_objects_of_payment: "a payment has one provider object",
  object_of_two_attempts: "a provider object is the charge of one attempt",
  two_charges_of_order_id: "an order id is charged once",
  order_id_disagrees: "a payment that holds its order id is the one that order_ids names, and no other",
  charge_without_object: "a payment with money names the provider object that was charged",
  ledger_unbalanced: "the debits of a tenant's accounts in a currency equal the credits",
  books_differ: "a payment's ledger entries say what the payment says",
  refunds_out_of_order: "0 <= refunded <= reserved <= captured",
  refund_sums_differ: "a payment's refunds add up to what the payment says",
  attempt_missing: "the attempt of a payment or refund is there, and is its own",
  payment_stuck: "an open payment has something due, or an open review",
  attempt_stuck: "an attempt that has not ended is due at some time",
  review_missing: "a payment or refund that needs a review has an open one",
  attempt_overdue: "a due attempt is taken by a worker",
  lease_abandoned: "an attempt whose lease has ended is taken by a worker",
  attempt_due_too_late: "an open attempt is due, and its lease ends, as soon as the longest wait is over",
  authorization_past_end: "an authorization that has ended is not shown as held",
  delivery_overdue: "a due delivery is tried",
  delivery_due_too_late: "a delivery is due as soon as the longest wait of its schedule is over",
  event_not_relayed: "deliveries are made of every event",
  provider_event_overdue: "a stored event of the provider's is applied",
  provider_event_due_too_late: "a stored event of the provider's is due as soon as the longest wait is over",
  entry_not_counted: "ledger entries are counted into the balances",
  uncounted_without_entry: "what is still to be counted into the balances is an entry",
  recovery_running_long: "a recovery ends",
  comparison_overdue: "what the provider has is compared with what we have",
  key_without_resource: "what a key stands for is there",
  key_left_open: "a key is in progress only while its attempt is",
  key_of_another: "the key of an attempt names the payment or refund of that attempt",
  key_without_answer: "a completed key has its answer and its expiry",
  fence_went_back: "fences only grow",
  fact_without_event: "every transition has its event",
  fact_told_twice: "every event has a transition of its own",
  status_without_fact: "a payment's status is one that its timeline tells",
  payment_missing: "the payment of an event or attempt is there",
} as const;

export type Invariant = keyof typeof INVARIANTS;
export const INVARIANT_NAMES = Object.keys(INVARIANTS) as readonly Invariant[];

/** What is looked at one by one: each kind has its rows' primary key as its name. */
export const SUBJECT_KINDS = ["payment", "attempt", "event", "key", "order_id"] as const;
export type SubjectKind = (typeof SUBJECT_KINDS)[number];

/** A row by its primary key. Names are those of the columns. */
export type Subject = Readonly<Record<string, string>>;

/** One thing that breaks an invariant. Everything but `detail` names it, however often it is seen. */
export interface Violation {
  readonly invariant: Invariant;
  /** Null: of the whole installation, or across tenants. */
  readonly tenantId: string | null;
  readonly paymentId: string | null;
  /** Further ids, by what they are: `attempt_id`, `event_id`, `currency`, … */
  readonly ids: Readonly<Record<string, string>>;
  /** One sentence for a person, with the numbers of this moment. */
  readonly detail: string;
}

export function violationName({ invariant, tenantId, paymentId, ids }: Violation): string {
  const others = Object.entries(ids).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return JSON.stringify([invariant, tenantId, paymentId, others]);
}

export function violationDocument(violation: Violation) {
  return {
    invariant: violation.invariant,
    meaning: INVARIANTS[violation.invariant],
    tenant_id: violation.tenantId,
    payment_id: violation.paymentId,
    ids: violation.ids,
    detail: violation.detail,
  };
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** In milliseconds: how long something may be past its time before it is a fault and no longer a queue. */
export interface DoctorBounds {
  /** Attempts, events to relay, the provider's events, ledger entries. */
  readonly overdueMs: number;
  /** A slow receiver works off its own queue for longer. */
  readonly deliveryOverdueMs: number;
  /** The provider ends an authorization itself, and may take its time. */
  readonly authorizationMs: number;
  readonly recoveryMs: number;
  readonly comparisonMs: number;
  /** How far ahead a lease may end, of an attempt or a comparison. */
  readonly leaseAheadMs: number;
  /** How far ahead something may be due: beyond it lies no wait of these settings. */
  readonly attemptAheadMs: number;
  readonly deliveryAheadMs: number;
  readonly providerEventAheadMs: number;
}

/** Of the settings, what tells how long something may wait. */
export interface DoctorSettings {
  readonly reconcileEveryMs: number;
  readonly attemptLeaseMs: number;
  readonly followMostMs: number;
  readonly retryMostMs: number;
  readonly webhookTimeoutMs: number;
  readonly webhookRetryScheduleMs: readonly number[];
}

/** Processes may have settings that differ a little, and their database a clock that is put right now and then. */
const AHEAD_MARGIN_MS = HOUR_MS;
/** The deliveries of a disabled endpoint are looked at as often. */
const DISABLED_LOOK_MS = HOUR_MS;

/** Comparisons in a row that may fail, one window after another, before nobody compares any more. */
const COMPARISONS_MISSED = 4;

export function doctorBounds(settings: DoctorSettings): DoctorBounds {
  const { reconcileEveryMs, attemptLeaseMs, followMostMs, retryMostMs } = settings;
  const { webhookTimeoutMs, webhookRetryScheduleMs: schedule } = settings;
  const steps = schedule.map((_, at) => waitAfter(schedule, at + 1, 1) ?? 0);
  const ahead = (...waitsMs: readonly number[]) => Math.max(...waitsMs) + AHEAD_MARGIN_MS;
  return {
    overdueMs: 10 * MINUTE_MS,
    deliveryOverdueMs: HOUR_MS,
    authorizationMs: 6 * HOUR_MS,
    recoveryMs: HOUR_MS,
    comparisonMs: Math.max(24 * HOUR_MS, COMPARISONS_MISSED * reconcileEveryMs),
    leaseAheadMs: ahead(attemptLeaseMs),
    attemptAheadMs: ahead(attemptLeaseMs, LONGEST_WAIT_MS, followMostMs, HELD_LOOK_MS),
    deliveryAheadMs: ahead(webhookTimeoutMs, retryMostMs, DISABLED_LOOK_MS, ...steps),
    providerEventAheadMs: ahead(attemptLeaseMs, LONGEST_WAIT_MS),
  };
}
