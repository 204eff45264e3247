import type { Random } from "./random.js";
import type { RestorePlan } from "./restore.js";

interface Setting {
  readonly env: Readonly<Record<string, string>>;
  readonly stormMs: number;
  readonly outages: readonly { readonly atMs: number; readonly forMs: number }[];
  readonly nights: readonly { readonly atMs: number; readonly forMs: number }[];
  readonly restore: RestorePlan | null;
}

/** Outlasted by the outage, so that the first runs of keys come to nothing. */
const BUDGET_MS = 30_000;

/**
 * In some seeds keys run more than once before all their rows are lost: the provider is away while payments are asked for,
 * comes back, and what is put back is from before the first of them, or nearly. Later refunds may fare likewise.
 */
export function withLostRuns<Drawn extends Setting>(random: Random, drawn: Drawn): Drawn {
  if (drawn.restore === null || !random.chance(0.4)) return drawn;
  const awayForMs = random.duration(BUDGET_MS, 150_000);
  const again = {
    atMs: awayForMs + random.duration(30_000, 200_000),
    forMs: random.duration(BUDGET_MS, 90_000),
  };
  const atMs = awayForMs + random.duration(20_000, 600_000);
  return {
    ...drawn,
    env: { ...drawn.env, ATTEMPT_RETRY_BUDGET_MS: String(BUDGET_MS) },
    stormMs: Math.max(drawn.stormMs, atMs),
    outages: [{ atMs: 0, forMs: awayForMs }, ...(random.chance(0.5) ? [again] : [])],
    nights: [],
    restore: { ...drawn.restore, atMs, keptAtMs: random.duration(1, 20_000) },
  };
}
