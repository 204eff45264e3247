import { randomText } from "./ids.js";
import { CALL_NAMES, type CallName } from "./operation.js";

export const FAULT_TYPES = [
  "slow",
  "reset",
  "hang",
  "garbage",
  "cut_off",
  "empty",
  "html",
  "drip",
  "error",
  "stored_error",
] as const;
export type FaultType = (typeof FAULT_TYPES)[number];

/** What becomes of the request itself, whatever the caller gets to see. */
export const EFFECTS = ["none", "applied", "later"] as const;
export type Effect = (typeof EFFECTS)[number];

/** Where a request with a later effect is meanwhile: see `Fault.arrival`. */
export const ARRIVALS = ["in_network", "executing"] as const;
export type Arrival = (typeof ARRIVALS)[number];

export interface Fault {
  readonly type: FaultType;
  /** `slow`, `drip`: always applied. `reset`, `hang` and the broken answers: default `applied`; errors: default `none`. */
  readonly effect: Effect;
  /**
   * With effect `later`. `in_network`: it has not reached the provider; its key is free, and when it arrives it goes through
   * authentication, key layer and state guard as they are then. `executing`: it has arrived; its key is in use, its
   * object locked, and the effect comes at the end.
   */
  readonly arrival: Arrival;
  /** With effect `later`, real milliseconds; null: until released. */
  readonly effect_after_ms: number | null;
  /** `hang`: real milliseconds until the answer goes out; null: until released. */
  readonly hang_ms: number | null;
  /** `drip`: real milliseconds between two bytes. */
  readonly interval_ms: number;
  /** `error`, `stored_error`, `html`, and the 200 of the broken answers. */
  readonly status: number;
  readonly code: string | null;
  readonly error_type: string | null;
  readonly message: string | null;
  /** Seconds, sent as `Retry-After`. */
  readonly retry_after: number | null;
}

export interface FaultMatch {
  /** A call's name, several, or a group such as `payment_intents.*`. Absent: every call. */
  readonly call?: string | readonly string[];
  readonly idempotency_key?: string;
  /** A regular expression, looked for anywhere in the key. */
  readonly idempotency_key_pattern?: string;
  /** The id in the path; without one, the PaymentIntent or charge that the request names: that of a new refund. */
  readonly object_id?: string;
  /** Of the request's parameters, or of the object in the path. */
  readonly metadata?: Readonly<Record<string, string>>;
  readonly account?: string;
}

/** A rule as it is given; `fault` may leave out what has a default. */
export interface FaultRuleInput {
  readonly match?: FaultMatch;
  /** The first n matching requests go by. Default 0. */
  readonly skip?: number;
  /** How many requests it is applied to; null: for ever. Default 1. */
  readonly times?: number | null;
  /** 0 to 1. Default 1. A request it spares does not count. */
  readonly probability?: number;
  /** Real milliseconds of work before the effect, on top of the sandbox's own latency. Default 0. */
  readonly latency_ms?: number;
  /** `slow` does nothing but wait `latency_ms`. */
  readonly fault: { readonly type: FaultType } & Partial<Fault>;
}

export interface FaultRule {
  readonly id: string;
  readonly match: FaultMatch;
  readonly skip: number;
  readonly times: number | null;
  readonly probability: number;
  readonly latency_ms: number;
  readonly fault: Fault;
  /** Matching requests so far, and to how many of them it was applied. */
  seen: number;
  applied: number;
}

/** What a rule is compared with. */
export interface Candidate {
  readonly call: CallName | null;
  readonly idempotencyKey: string | null;
  readonly objectId: string | null;
  readonly account: () => string | null;
  readonly metadata: () => readonly Readonly<Record<string, unknown>>[];
}

/** The rules in the order they were added: the first that matches and is not used up is applied. */
export class FaultRules {
  #rules: FaultRule[] = [];
  readonly #random: () => number;

  constructor(random: () => number = Math.random) {
    this.#random = random;
  }

  add(input: FaultRuleInput): FaultRule {
    const rule: FaultRule = {
      id: `rule_${randomText(8)}`,
      match: input.match ?? {},
      skip: input.skip ?? 0,
      times: input.times === undefined ? 1 : input.times,
      probability: input.probability ?? 1,
      latency_ms: input.latency_ms ?? 0,
      fault: completeFault(input.fault),
      seen: 0,
      applied: 0,
    };
    this.#rules.push(rule);
    return rule;
  }

  list(): readonly FaultRule[] {
    return this.#rules;
  }

  remove(id: string): boolean {
    const kept = this.#rules.filter((rule) => rule.id !== id);
    const removed = kept.length < this.#rules.length;
    this.#rules = kept;
    return removed;
  }

  clear(): void {
    this.#rules = [];
  }

  /** The rule for this request, counted as applied; null: none. */
  take(candidate: Candidate): FaultRule | null {
    for (const rule of this.#rules) {
      if (rule.times !== null && rule.applied >= rule.times) continue;
      if (!matches(rule.match, candidate)) continue;
      rule.seen += 1;
      if (rule.seen <= rule.skip) continue;
      if (rule.probability < 1 && this.#random() >= rule.probability) continue;
      rule.applied += 1;
      return rule;
    }
    return null;
  }
}

function matches(match: FaultMatch, candidate: Candidate): boolean {
  if (match.call !== undefined && !matchesCall(match.call, candidate.call)) return false;
  const key = candidate.idempotencyKey;
  if (match.idempotency_key !== undefined && match.idempotency_key !== key) return false;
  if (match.idempotency_key_pattern !== undefined) {
    if (key === null || !new RegExp(match.idempotency_key_pattern).test(key)) return false;
  }
  if (match.object_id !== undefined && match.object_id !== candidate.objectId) return false;
  if (match.account !== undefined && match.account !== candidate.account()) return false;
  if (match.metadata === undefined) return true;
  const wanted = Object.entries(match.metadata);
  return candidate.metadata().some((metadata) => wanted.every(([name, value]) => metadata[name] === value));
}

function matchesCall(wanted: string | readonly string[], call: CallName | null): boolean {
  if (call === null) return false;
  const list = typeof wanted === "string" ? [wanted] : wanted;
  return list.some((each) => each === call || (each.endsWith(".*") && call.startsWith(each.slice(0, -1))));
}

/** Whether a rule could ever match by this name. */
export function isCallPattern(name: string): boolean {
  return CALL_NAMES.some((call) => matchesCall(name, call));
}

function completeFault(given: FaultRuleInput["fault"]): Fault {
  const isError = given.type === "error" || given.type === "stored_error";
  return {
    type: given.type,
    effect: given.effect ?? (isError ? "none" : "applied"),
    arrival: given.arrival ?? "executing",
    effect_after_ms: given.effect_after_ms ?? null,
    hang_ms: given.hang_ms ?? null,
    interval_ms: given.interval_ms ?? 100,
    status: given.status ?? (isError ? 500 : given.type === "html" ? 502 : 200),
    code: given.code ?? null,
    error_type: given.error_type ?? null,
    message: given.message ?? null,
    retry_after: given.retry_after ?? null,
  };
}
