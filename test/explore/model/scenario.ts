import type { ReviewResolution } from "../../../src/domain/instruction.js";
import type { Moment } from "./clock.js";
import type { BANK_ANSWERS, CARD_ANSWERS } from "./stripe-objects.js";
import type { World } from "./world.js";

/** One request that a client sends with its key, and sends again as often as it likes. */
export type ClientRequest =
  | {
      readonly operation: "payments.create";
      readonly key: string;
      readonly amount: number;
      readonly captureMethod: "automatic" | "manual";
      readonly orderId: string | null;
    }
  | {
      readonly operation: "payments.capture" | "payments.cancel" | "refunds.create";
      readonly key: string;
      readonly amount: number | null;
      /** The place of the request whose payment it is about. */
      readonly of: number;
    };

/** Everything that goes wrong costs one fault of the scenario's budget. */
export const FAULTS = [
  /** No answer before the deadline: the request is still under way, or was executed. */
  "no_answer",
  /** The process dies, or its lease ends under it. */
  "death",
  /** A 500, saved under the key, with the effect or without. */
  "server_error",
  /** A list without what it should show. */
  "lagging_list",
  /** 429: refused before execution. */
  "rate_limit",
  /** The worker cannot learn whose credential it has. */
  "account_unknown",
  /** The worker has another account's credential. */
  "account_changed",
  /** All tables are as they were at an earlier moment. */
  "restore",
] as const;
export type Fault = (typeof FAULTS)[number];

/** What is searched: who does what, what may go wrong, and how often. */
export interface Scenario {
  readonly name: string;
  readonly requests: readonly ClientRequest[];
  /** How often one key may run: again after a run that is proven to be without effect. */
  readonly runs: number;
  readonly workers: number;
  readonly faults: number;
  readonly allowed: readonly Fault[];
  readonly card: readonly (typeof CARD_ANSWERS)[number][];
  readonly bank: readonly (typeof BANK_ANSWERS)[number][];
  /** The customer acts where action is asked for, and pays a declined object with another card. */
  readonly customer: boolean;
  /** What somebody does once at Stripe's dashboard. */
  readonly dashboard: readonly ("cancel" | "capture" | "refund")[];
  /** Who paid may dispute that. */
  readonly disputes: boolean;
  /** What a person may decide in a review; null: nobody looks. */
  readonly person: readonly ReviewResolution[] | null;
  readonly moments: readonly Moment[];
  /** Assumed of the network and of Stripe: a request that has not been executed by then never is. */
  readonly longestFlightMs: number;
  readonly customerActionExpiryMs: number;
  /** What a restored backup holds: nothing, or what there was where the search starts. */
  readonly backup: "nothing" | "start";
  /** A restored backup is noticed before anything else happens, and the database recovers. */
  readonly recovers: boolean;
  /** How many attempts a restored backup loses at most. */
  readonly mostLost: number;
  /** What was under way when the backup was put back may be executed after that. */
  readonly flightsOutliveRestores: boolean;
  /** Where the search starts: the first state of a faultless life that fits. */
  readonly from: ((world: World) => boolean) | null;
  /** Workers whose fence has moved on are followed to their end, though they can write nothing. */
  readonly keepsStaleWorkers: boolean;
}

export function may({ scenario }: { readonly scenario: Scenario }, world: World, fault: Fault): boolean {
  return world.faults > 0 && scenario.allowed.includes(fault);
}
