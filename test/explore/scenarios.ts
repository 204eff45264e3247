import { REVIEW_RESOLUTIONS } from "../../src/domain/instruction.js";
import {
  ACCEPTED,
  BUDGET_OVER,
  CUSTOMER_LATE,
  HOUR_MS,
  KEYS_PRUNED,
  LAPSED,
  LIFETIME_OVER,
  ROW_OLD,
} from "./model/clock.js";
import type { ClientRequest, Scenario } from "./model/scenario.js";
import type { World } from "./model/world.js";

/** What is explored, each with as many faults as its states can be searched for within a test. */

const ORDER = "order-1";

function pay(key: string): ClientRequest {
  return { operation: "payments.create", key, amount: 100, captureMethod: "automatic", orderId: ORDER };
}

/** Without an order id, whose hold would keep some faults from showing. */
function authorize(key: string): ClientRequest {
  return { operation: "payments.create", key, amount: 100, captureMethod: "manual", orderId: null };
}

function refund(key: string, amount: number): ClientRequest {
  return { operation: "refunds.create", key, amount, of: 0 };
}

function cancel(key: string): ClientRequest {
  return { operation: "payments.cancel", key, amount: null, of: 0 };
}

/** Nothing is lost by it: before the first request there is nothing but time, and every limit counts from it. */
function isAccepted(world: World): boolean {
  return world.accepted.length > 0;
}

function rests(status: string): Scenario["from"] {
  return ({ tables, runs }) => runs.length === 0 && tables.payments[0]?.value.status === status;
}

const PLAIN: Omit<Scenario, "name"> = {
  requests: [pay("key-1")],
  runs: 1,
  workers: 2,
  faults: 2,
  allowed: ["no_answer", "death", "server_error", "rate_limit"],
  card: ["pays", "declines"],
  bank: ["refunds"],
  customer: true,
  dashboard: [],
  disputes: false,
  person: null,
  moments: [ACCEPTED, BUDGET_OVER],
  longestFlightMs: 24 * HOUR_MS,
  customerActionExpiryMs: 24 * HOUR_MS,
  backup: "nothing",
  recovers: false,
  mostLost: 1,
  flightsOutliveRestores: true,
  from: isAccepted,
  keepsStaleWorkers: false,
};

export const ONE_PAYMENT: Scenario = { ...PLAIN, name: "one payment", faults: 3 };

const RUN_AGAIN: Scenario = { ...PLAIN, name: "one payment whose key runs again", runs: 2 };

const ONE_PAYMENT_FOR_LONG: Scenario = {
  ...PLAIN,
  name: "one payment until Stripe has forgotten its keys",
  moments: [ACCEPTED, BUDGET_OVER, ROW_OLD, LIFETIME_OVER, KEYS_PRUNED],
};

export const ONE_ORDER: Scenario = {
  ...PLAIN,
  name: "two payments with one order id",
  requests: [pay("key-1"), pay("key-2")],
};

const MISLEADING_DECLINE: Scenario = {
  ...PLAIN,
  name: "a decline that may be none",
  card: ["pays", "misleads"],
};

const CUSTOMER: Scenario = {
  ...PLAIN,
  name: "a payment that waits for its customer, and may be canceled",
  requests: [pay("key-1"), cancel("key-2")],
  card: ["asks"],
  moments: [ACCEPTED, CUSTOMER_LATE],
  customerActionExpiryMs: HOUR_MS,
  faults: 1,
};

const PENDING: Scenario = {
  ...PLAIN,
  name: "a payment that the bank decides about later",
  card: ["pends"],
};

export const OTHER_CREDENTIAL: Scenario = {
  ...PLAIN,
  name: "a worker with another account's credential, or with one that it knows nothing of",
  allowed: ["account_changed", "account_unknown", "no_answer", "death", "rate_limit"],
};

export const STALE_WORKERS: Scenario = {
  ...PLAIN,
  name: "workers whose lease ends under a slow call",
  keepsStaleWorkers: true,
};

/** What the derived ids hold without a recovery: a client that sends its key again. */
export const RESTORED_EMPTY: Scenario = {
  ...PLAIN,
  name: "a payment that a restored backup does not know",
  allowed: ["restore", "no_answer", "death"],
  moments: [ACCEPTED, ROW_OLD],
};

/** What the age of a row holds without a recovery. */
export const RESTORED_ROW: Scenario = {
  ...RESTORED_EMPTY,
  name: "a payment that a restored backup knows as new",
  backup: "start",
  moments: [ACCEPTED, ROW_OLD, LIFETIME_OVER, KEYS_PRUNED],
};

/** What the question about earlier runs holds: the row is believed in the minute after its budget, and its key runs again. */
export const RESTORED_AGAIN: Scenario = {
  ...RESTORED_EMPTY,
  name: "a payment that a restored backup knows as new, and whose key runs again",
  allowed: ["restore", "no_answer"],
  backup: "start",
  runs: 2,
  card: ["pays"],
  moments: [ACCEPTED, BUDGET_OVER],
  faults: 2,
};

/** A recovery holds what derived ids do not: keys that Stripe has forgotten, and rows that nobody sends again. */
export const RECOVERED_EMPTY: Scenario = {
  ...RESTORED_EMPTY,
  name: "a payment whose row was lost, and recovered",
  recovers: true,
  moments: [ACCEPTED, BUDGET_OVER, KEYS_PRUNED],
};

export const RECOVERED_ROW: Scenario = {
  ...RECOVERED_EMPTY,
  name: "a payment that a restored backup knows as new, and recovered",
  backup: "start",
};

/** All rows of a key that has run twice are lost. */
export const RECOVERED_AGAIN: Scenario = {
  ...RECOVERED_EMPTY,
  name: "a payment whose key ran twice, whose rows were lost, and recovered",
  allowed: ["restore", "rate_limit"],
  runs: 2,
  mostLost: 2,
  card: ["pays"],
  moments: [ACCEPTED, BUDGET_OVER],
  faults: 2,
};

/** A person may say that nothing was performed once the keys' lifetime is over: no request may be under way so long. */
const PERSON: Scenario = {
  ...PLAIN,
  name: "a person who resolves the reviews of a payment",
  person: REVIEW_RESOLUTIONS,
  longestFlightMs: HOUR_MS,
  moments: [ACCEPTED, LIFETIME_OVER, KEYS_PRUNED],
};

export const CAPTURE_AND_CANCEL: Scenario = {
  ...PLAIN,
  name: "an authorized payment, captured and canceled at once",
  requests: [
    authorize("key-1"),
    { operation: "payments.capture", key: "key-2", amount: 60, of: 0 },
    cancel("key-3"),
  ],
  card: ["pays"],
  from: rests("authorized"),
  faults: 3,
};

const DASHBOARD: Scenario = {
  ...CAPTURE_AND_CANCEL,
  name: "an authorized payment that somebody also handles at the dashboard",
  dashboard: ["capture", "cancel"],
  faults: 1,
};

const LAPSE: Scenario = {
  ...CAPTURE_AND_CANCEL,
  name: "an authorisation that lapses while it is captured",
  requests: CAPTURE_AND_CANCEL.requests.slice(0, 2),
  moments: [ACCEPTED, LAPSED],
  faults: 2,
};

export const REFUND: Scenario = {
  ...PLAIN,
  name: "a refund, run again where it may be",
  requests: [pay("key-1"), refund("key-2", 40)],
  runs: 2,
  card: ["pays"],
  bank: ["refunds", "refund_pends"],
  from: rests("succeeded"),
};

/**
 * What the question about earlier runs holds for a refund, where nothing that was sent before the restore is under way
 * any more: a refund that lands later is in no list yet.
 */
export const RESTORED_REFUND: Scenario = {
  ...REFUND,
  name: "a refund that a restored backup knows as new, and whose key runs again",
  allowed: ["restore", "no_answer"],
  bank: ["refunds"],
  backup: "start",
  flightsOutliveRestores: false,
  from: ({ tables, runs }) => runs.length === 0 && tables.refunds.length === 1,
};

export const RECOVERED_REFUND: Scenario = {
  ...REFUND,
  name: "a refund whose row was lost, and recovered",
  allowed: ["restore", "no_answer"],
  runs: 1,
  bank: ["refunds"],
  moments: [ACCEPTED, KEYS_PRUNED],
  backup: "start",
  recovers: true,
};

const TWO_REFUNDS: Scenario = {
  ...REFUND,
  name: "two refunds of a payment at once",
  requests: [pay("key-1"), refund("key-2", 40), refund("key-3", 60)],
  allowed: ["no_answer", "death"],
  runs: 1,
  bank: ["refunds"],
  moments: [ACCEPTED],
  faults: 1,
};

const TOO_MUCH: Scenario = {
  ...TWO_REFUNDS,
  name: "two refunds of more than was captured",
  requests: [pay("key-1"), refund("key-2", 40), refund("key-3", 80)],
};

const REFUND_FOR_LONG: Scenario = {
  ...REFUND,
  name: "a refund until Stripe has forgotten its key",
  runs: 1,
  moments: [ACCEPTED, BUDGET_OVER, LIFETIME_OVER, KEYS_PRUNED],
  faults: 1,
};

export const UNLISTED_REFUND: Scenario = {
  ...REFUND,
  name: "a refund that Stripe's list does not show",
  allowed: ["no_answer", "lagging_list"],
  runs: 1,
  bank: ["refunds"],
  moments: [ACCEPTED, LIFETIME_OVER, KEYS_PRUNED],
};

const REFUND_OUTSIDE: Scenario = {
  ...REFUND,
  name: "a refund, and one that somebody makes at the dashboard",
  requests: [pay("key-1"), refund("key-2", 80)],
  allowed: ["no_answer", "death"],
  runs: 1,
  // A refund that fails at the bank later: until that is heard of, more is shown as given back than there was.
  bank: ["refunds"],
  dashboard: ["refund"],
  moments: [ACCEPTED],
};

export const DISPUTE: Scenario = {
  ...REFUND,
  name: "a payment that is disputed while it is refunded",
  allowed: ["no_answer", "death"],
  runs: 1,
  bank: ["refunds"],
  disputes: true,
  moments: [ACCEPTED],
  faults: 0,
};

const PERSON_ON_REFUND: Scenario = {
  ...REFUND,
  name: "a person who resolves the reviews of a refund",
  person: REVIEW_RESOLUTIONS,
  longestFlightMs: HOUR_MS,
  bank: ["refunds"],
  moments: [ACCEPTED, LIFETIME_OVER, KEYS_PRUNED],
  faults: 1,
};

export const CHARGES: readonly Scenario[] = [
  ONE_PAYMENT,
  RUN_AGAIN,
  ONE_PAYMENT_FOR_LONG,
  ONE_ORDER,
  MISLEADING_DECLINE,
  CUSTOMER,
  PENDING,
  OTHER_CREDENTIAL,
  STALE_WORKERS,
  RESTORED_EMPTY,
  RESTORED_ROW,
  RESTORED_AGAIN,
  RECOVERED_EMPTY,
  RECOVERED_ROW,
  RECOVERED_AGAIN,
  PERSON,
];

export const EFFECTS: readonly Scenario[] = [
  CAPTURE_AND_CANCEL,
  DASHBOARD,
  LAPSE,
  REFUND,
  RESTORED_REFUND,
  RECOVERED_REFUND,
  TWO_REFUNDS,
  TOO_MUCH,
  REFUND_FOR_LONG,
  UNLISTED_REFUND,
  REFUND_OUTSIDE,
  DISPUTE,
  PERSON_ON_REFUND,
];
