import { ACCEPTED, BUDGET_OVER, KEYS_PRUNED, LIFETIME_OVER, ROW_OLD } from "./model/clock.js";
import type { Scenario } from "./model/scenario.js";

const HOUR_MS = 3_600_000;

const PLAIN: Scenario = {
  name: "",
  requests: [],
  runs: 2,
  workers: 2,
  faults: 1,
  allowed: ["no_answer", "death", "server_error", "rate_limit"],
  card: ["pays"],
  bank: ["refunds"],
  customer: false,
  dashboard: [],
  moments: [ACCEPTED],
  customerActionExpiryMs: 24 * HOUR_MS,
  backup: "nothing",
  from: null,
  keepsStaleWorkers: false,
};

export const ONE_CHARGE: Scenario = {
  ...PLAIN,
  name: "one payment",
  requests: [
    { operation: "payments.create", key: "key-1", amount: 100, captureMethod: "automatic", orderId: "order-1" },
  ],
  card: ["pays", "declines"],
  customer: true,
  from: (world) => world.accepted.length === 1,
  moments: [ACCEPTED, BUDGET_OVER, ROW_OLD, LIFETIME_OVER, KEYS_PRUNED],
};
