import type { Context } from "./context.js";
import type { Tables } from "./rows.js";
import { EMPTY_STRIPE } from "./stripe-objects.js";
import type { World } from "./world.js";

export function emptyTables({ scenario, refs }: Context): Tables {
  return {
    attempts: [],
    payments: [],
    sides: [],
    refunds: [],
    keys: scenario.requests.map(() => null),
    orders: refs.orders.of({}),
  };
}

export function startOf(context: Context): World {
  return {
    moment: 0,
    faults: context.scenario.faults,
    tables: emptyTables(context),
    stripe: context.refs.stripe.of(EMPTY_STRIPE),
    runs: [],
    flying: [],
    doubts: 0,
    done: 0,
    accepted: [],
    readings: [],
    recovery: "none",
  };
}
