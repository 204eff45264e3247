/** Waits between tries. Each is drawn from the upper half of a whole, and never 0, so that no loop can spin. */

export interface WaitRange {
  readonly firstMs: number;
  readonly mostMs: number;
}

/** Far beyond any setting of tries; keeps the power from overflowing. */
const MOST_DOUBLINGS = 30;

/** The wait after the `tries`-th failed try, from 1: the whole is first · 2^(tries-1), at most `mostMs`. */
export function backoffMs(range: WaitRange, tries: number, random: () => number): number {
  const doublings = Math.min(tries - 1, MOST_DOUBLINGS);
  return upperHalfMs(Math.min(range.firstMs * 2 ** doublings, range.mostMs), random);
}

/** The wait where a try does not count: the whole is half the event's age, so it grows without being counted. */
export function ageWaitMs(range: WaitRange, ageMs: number, random: () => number): number {
  return upperHalfMs(Math.min(Math.max(range.firstMs, ageMs / 2), range.mostMs), random);
}

/** `random`: 0 <= n < 1. */
function upperHalfMs(wholeMs: number, random: () => number): number {
  return Math.max(1, Math.round((wholeMs * (1 + random())) / 2));
}
