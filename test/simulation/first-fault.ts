import { runSeed, type SeedOptions } from "./run-seed.js";
import { useSimulatedDatabase } from "./seed-suite.js";

const MOST_SEEDS = 40;
export const BROKEN_TIMEOUT_MS = 180_000;
/** What is said where no seed shows such a fault: it names the sign, so it must be told from a fault. */
export const NOT_SEEN = /^none of/;

/** For a suite that takes rules out: the first fault of such a kind, from a seed on that showed one when this was written. */
export function useFirstFault() {
  const stage = useSimulatedDatabase();
  return async (
    from: number,
    sign: RegExp,
    worse: Pick<SeedOptions, "flaws" | "weather"> = {},
  ): Promise<string> => {
    const others: string[] = [];
    for (let seed = from; seed < from + MOST_SEEDS; seed += 1) {
      const { faults } = await runSeed(seed, { database: stage.database, ...worse });
      const found = faults.find((fault) => sign.test(fault));
      if (found !== undefined) return found;
      others.push(...faults);
    }
    return `none of ${String(MOST_SEEDS)} seeds shows ${sign.source}; seen instead: ${others.join("; ").slice(0, 2_000)}`;
  };
}
