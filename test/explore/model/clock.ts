import type { ChargePolicy } from "../../../src/domain/charge-change.js";

/**
 * Time is a few moments, each on the other side of a threshold; between them any number of steps fits. Waits and leases
 * are not measured: an attempt that is due may be taken at once, and a lease may end at any moment.
 */
export interface Moment {
  readonly name: string;
  readonly atMs: number;
}

export const HOUR_MS = 3_600_000;
const START = Date.UTC(2026, 0, 5);

export const BUDGET_MS = 120_000;
/** As in src/domain/charge-change.ts. */
const ROW_TRUSTED_MS = 60_000;
const KEY_LIFETIME_MS = 23 * HOUR_MS;
/** Stripe may remove a key that is at least so old (docs.stripe.com/api/idempotent_requests). */
export const KEY_KEPT_MS = 24 * HOUR_MS;
export const ACCEPTED: Moment = { name: "the start", atMs: 0 };
/** Within the minute in which a row alone may prove that nothing was sent. */
export const BUDGET_OVER: Moment = { name: "the budget is over", atMs: BUDGET_MS + 10_000 };
export const ROW_OLD: Moment = { name: "the budget has been over for long", atMs: 1_000_000 };
export const LIFETIME_OVER: Moment = {
  name: "our trust in the provider's keys has ended",
  atMs: 23.5 * HOUR_MS,
};
export const KEYS_PRUNED: Moment = { name: "the provider may have removed its keys", atMs: 24.6 * HOUR_MS };

export const CUSTOMER_LATE: Moment = { name: "the customer has had the time there is", atMs: 2 * HOUR_MS };
export const LAPSED: Moment = { name: "the authorisation has lapsed", atMs: 8 * 24 * HOUR_MS };

export function policyWith(customerActionExpiryMs: number): ChargePolicy {
  return {
    retryBudgetMs: BUDGET_MS,
    keyLifetimeMs: KEY_LIFETIME_MS,
    reviewAfterMs: 24 * HOUR_MS,
    customerActionExpiryMs,
    retry: { firstMs: 250, mostMs: 300_000 },
    follow: { firstMs: 2_000, mostMs: 300_000 },
    random: () => 0.5,
  };
}

/** What the age of a time is compared with, in the shipped code and at Stripe. */
export function agesOf(policy: ChargePolicy, longestFlightMs: number) {
  return {
    created: [
      policy.retryBudgetMs,
      policy.retryBudgetMs + ROW_TRUSTED_MS,
      policy.keyLifetimeMs,
      policy.customerActionExpiryMs,
    ],
    firstSent: [policy.keyLifetimeMs],
    unknown: [policy.reviewAfterMs],
    saved: [KEY_KEPT_MS],
    sent: [longestFlightMs],
    /** Shown, and never compared. */
    shown: [],
  } as const satisfies Record<string, readonly number[]>;
}

/**
 * The earliest moment that no comparison with one of the ages tells from `atMs`, at `nowMs` or later. Times that are
 * alike are written alike, so that states which differ by them alone are one.
 */
export function alike(
  moments: readonly Moment[],
  nowMs: number,
  atMs: number,
  ages: readonly number[],
): number {
  const later = moments.filter((moment) => moment.atMs >= nowMs);
  const tell = (one: number) => ages.flatMap((age) => later.map((moment) => moment.atMs - one >= age)).join();
  return moments.find((moment) => moment.atMs <= atMs && tell(moment.atMs) === tell(atMs))?.atMs ?? atMs;
}

export function dateAt(atMs: number): Date {
  return new Date(START + atMs);
}

export function textAt(atMs: number): string {
  return dateAt(atMs).toISOString();
}

/** Milliseconds since the start. */
export function sinceStart(text: string): number {
  return Date.parse(text) - START;
}
