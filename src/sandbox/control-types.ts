import type { HeldRequest, HeldSelector } from "./held-requests.js";
import type { RequestFilter } from "./request-log.js";

export interface ClockState {
  /** RFC 3339. */
  readonly now: string;
  /** Added to the machine's clock. */
  readonly offset_ms: number;
}

export interface WaitForRequests {
  readonly filter?: RequestFilter;
  /** Default 1. */
  readonly count?: number;
  /** `received` (default): it is in the log. `settled`: what it came to is known. */
  readonly until?: "received" | "settled";
  /** Default 10,000; at most 60,000. */
  readonly timeout_ms?: number;
}

export interface WaitForHeld {
  readonly selector?: HeldSelector;
  readonly count?: number;
  readonly timeout_ms?: number;
}

export interface Release extends HeldSelector {
  readonly outcome?: "proceed" | "drop";
}

export interface Released {
  readonly released: readonly HeldRequest[];
}

export interface KeyState {
  readonly account: string;
  readonly livemode: boolean;
  readonly key: string;
  readonly path: string;
  readonly state: "in_use" | "finished";
  readonly first_used_at: string;
  readonly status: number | null;
}

export interface DisputeInput {
  /** Minor units. */
  readonly amount?: number;
  readonly reason?: string;
  /** No money is taken, and the charge can still be refunded. Default false. */
  readonly inquiry?: boolean;
  /** False: the funds stay until `withdrawFunds`. Default: withdrawn at once, unless it is an inquiry. */
  readonly withdraw?: boolean;
}

/** Nothing given: every account, mode and currency. */
export interface PayoutFilter {
  readonly account?: string;
  readonly livemode?: boolean;
  readonly currency?: string;
}

/** An event that a test wants: of an object as it is now, or of one of its own making. */
export interface EventInput {
  readonly type: string;
  /** One of the two. */
  readonly object_id?: string;
  readonly object?: Readonly<Record<string, unknown>>;
  /** Needed for an object that the sandbox does not hold. */
  readonly account?: string;
  /** Default: the mode of the object's account. */
  readonly livemode?: boolean;
  /** Default: the sandbox's own. */
  readonly api_version?: string;
}
