export interface BackoffPolicy {
  readonly firstMs: number;
  readonly mostMs: number;
}

/**
 * Exponential back-off with full jitter on the upper half: the n-th wait (n from 1) lies in
 * [half, whole] of `firstMs * 2^(n-1)`, capped at `mostMs`. Never 0, so a loop on it cannot spin.
 */
export function backoffMs(
  policy: BackoffPolicy,
  attempt: number,
  random: () => number = Math.random,
): number {
  const exponent = Math.min(Math.max(attempt, 1) - 1, 30);
  const whole = Math.min(policy.firstMs * 2 ** exponent, policy.mostMs);
  return Math.max(1, Math.round(whole / 2 + (whole / 2) * random()));
}
