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
