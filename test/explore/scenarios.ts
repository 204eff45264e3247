import { ACCEPTED, BUDGET_OVER, CUSTOMER_LATE, KEYS_PRUNED, LAPSED, LIFETIME_OVER, ROW_OLD } from "./model/clock.js";
import { REVIEW_RESOLUTIONS } from "../../src/domain/instruction.js";
import type { ClientRequest, Scenario } from "./model/scenario.js";
import type { World } from "./model/world.js";

const HOUR_MS = 3_600_000;
const ORDER = "order-1";

function pay(key: string): ClientRequest {
  return { operation: "payments.create", key, amount: 100, captureMethod: "automatic", orderId: ORDER };
}

/** Without an order id, whose hold would keep some faults from showing. */
function authorize(key: string): ClientRequest {
  return { operation: "payments.create", key, amount: 100, captureMethod: "manual", orderId: null };
}

/** Nothing is lost by it: before the first request there is nothing but time, and every limit counts from it. */
function isAccepted(world: World): boolean {
  return world.accepted.length > 0;
}

function rests(status: string) {
  return ({ tables, runs }: World) => runs.length === 0 && tables.payments[0]?.value.status === status;
}

const PLAIN: Scenario = {
  name: "",
  requests: [pay("key-1")],
  runs: 1,
  workers: 2,
  faults: 2,
  allowed: ["no_answer", "death", "server_error", "rate_limit"],
  card: ["pays", "declines"],
  bank: ["refunds"],
  customer: true,
  dashboard: [],
  moments: [ACCEPTED, BUDGET_OVER],
  customerActionExpiryMs: 24 * HOUR_MS,
  person: null,
  longestFlightMs: 24 * HOUR_MS,
  backup: "nothing",
  from: isAccepted,
  keepsStaleWorkers: false,
};

export const ONE_CHARGE: Scenario = { ...PLAIN, name: "one payment, whose key runs again where it may", runs: 2, faults: 3 };

export const ONE_CHARGE_FOR_LONG: Scenario = {
  ...PLAIN,
  name: "one payment until the provider has forgotten its keys",
  moments: [ACCEPTED, BUDGET_OVER, ROW_OLD, LIFETIME_OVER, KEYS_PRUNED],
};

export const MISLEADING_DECLINE: Scenario = {
  ...PLAIN,
  name: "one payment whose decline may be none",
  card: ["pays", "misleads"],
};

export const ONE_ORDER: Scenario = {
  ...PLAIN,
  name: "two payments with one order id",
  requests: [pay("key-1"), pay("key-2")],
};

export const CAPTURE_AND_CANCEL: Scenario = {
  ...PLAIN,
  name: "an authorized payment, captured and canceled at once",
  requests: [
    authorize("key-1"),
    { operation: "payments.capture", key: "key-2", amount: 60, of: 0 },
    { operation: "payments.cancel", key: "key-3", amount: null, of: 0 },
  ],
  card: ["pays"],
  from: rests("authorized"),
  faults: 3,
};

export const DASHBOARD: Scenario = {
  ...CAPTURE_AND_CANCEL,
  name: "an authorized payment, captured, canceled, and handled at the dashboard",
  dashboard: ["capture", "cancel"],
  faults: 2,
};

export const LAPSE: Scenario = {
  ...CAPTURE_AND_CANCEL,
  name: "an authorisation that lapses while it is captured",
  requests: CAPTURE_AND_CANCEL.requests.slice(0, 2),
  moments: [ACCEPTED, LAPSED],
  faults: 2,
};

export const REFUNDS: Scenario = {
  ...PLAIN,
  name: "two refunds of a payment",
  requests: [
    pay("key-1"),
    { operation: "refunds.create", key: "key-2", amount: 40, of: 0 },
    { operation: "refunds.create", key: "key-3", amount: 40, of: 0 },
  ],
  card: ["pays"],
  from: rests("succeeded"),
  faults: 2,
};

export const REFUND_FOR_LONG: Scenario = {
  ...REFUNDS,
  name: "a refund until the provider has forgotten its key",
  requests: REFUNDS.requests.slice(0, 2),
  bank: ["refunds", "refund_pends"],
  moments: [ACCEPTED, BUDGET_OVER, ROW_OLD, LIFETIME_OVER, KEYS_PRUNED],
  faults: 3,
};

export const UNLISTED_REFUND: Scenario = {
  ...REFUND_FOR_LONG,
  name: "a refund that the provider's list does not show",
  allowed: ["no_answer", "lagging_list"],
  faults: 2,
};

export const CUSTOMER: Scenario = {
  ...PLAIN,
  name: "a payment that waits for its customer, and may be canceled",
  requests: [pay("key-1"), { operation: "payments.cancel", key: "key-2", amount: null, of: 0 }],
  card: ["asks"],
  moments: [ACCEPTED, CUSTOMER_LATE],
  customerActionExpiryMs: HOUR_MS,
};

export const PENDING: Scenario = { ...PLAIN, name: "a payment that the bank decides about later", card: ["pends"] };

export const RESTORED_EMPTY: Scenario = {
  ...PLAIN,
  name: "a payment that a restored backup does not know",
  allowed: ["restore", "no_answer", "death"],
  moments: [ACCEPTED, ROW_OLD],
};

export const RESTORED_ROW: Scenario = {
  ...RESTORED_EMPTY,
  name: "a payment that a restored backup knows as new",
  backup: "accepted",
  moments: [ACCEPTED, ROW_OLD, LIFETIME_OVER, KEYS_PRUNED],
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

export const PERSON: Scenario = {
  ...PLAIN,
  name: "a person who resolves the reviews of one payment",
  person: REVIEW_RESOLUTIONS,
  longestFlightMs: HOUR_MS,
  moments: [ACCEPTED, ROW_OLD, LIFETIME_OVER, KEYS_PRUNED],
  runs: 2,
};

export const PERSON_ON_REFUND: Scenario = {
  ...REFUND_FOR_LONG,
  name: "a person who resolves the reviews of a refund",
  person: REVIEW_RESOLUTIONS,
  longestFlightMs: HOUR_MS,
  moments: [ACCEPTED, ROW_OLD, LIFETIME_OVER, KEYS_PRUNED],
  runs: 2,
  faults: 2,
};
