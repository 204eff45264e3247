// `npm run simulate`: seeded simulations of the real operations and workers on a PostgreSQL of their own
// (test/simulation/README.md). Exit 1 when a seed shows a fault.
import { parseArgs } from "node:util";
import { describeReport } from "../test/simulation/describe-report.js";
import { runSeed } from "../test/simulation/run-seed.js";
import { openSimulatedDatabase } from "../test/simulation/simulated-database.js";
import { startCluster } from "../test/support/postgres-cluster.js";

const USAGE = `npm run simulate -- [--seed N | --from N --seeds M] [--story]

  --seed N     one seed, with the last steps of its story where it shows a fault
  --seeds M    so many seeds (100)
  --from N     the first of them (1)
  --story      the whole story, whatever it shows`;

/** How often a long run says that it goes on. */
const TOLD_EVERY = 100;

interface Wanted {
  readonly from: number;
  readonly count: number;
  readonly isWhole: boolean;
}

/** False once whoever was reading (`… | head`) has gone: then there is nobody to run for. */
let isRead = true;
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  isRead = false;
});

/** Null: what was typed makes no sense. */
function wantedFrom(words: readonly string[]): Wanted | null {
  try {
    const { values } = parseArgs({
      args: [...words],
      options: {
        seed: { type: "string" },
        seeds: { type: "string" },
        from: { type: "string" },
        story: { type: "boolean", default: false },
      },
    });
    const { seed, seeds = "100", from = "1", story: isWhole } = values;
    const numbers = [seed ?? from, seed === undefined ? seeds : "1"].map(Number);
    const [first = 0, count = 0] = numbers;
    const isSound = numbers.every((number) => Number.isSafeInteger(number) && number > 0);
    return isSound ? { from: first, count, isWhole } : null;
  } catch {
    return null;
  }
}

async function simulate({ from, count, isWhole }: Wanted): Promise<number> {
  const cluster = await startCluster({ durable: false });
  const database = await openSimulatedDatabase(cluster.url);
  const failed: number[] = [];
  try {
    for (let seed = from; seed < from + count && isRead; seed += 1) {
      const report = await runSeed(seed, { database });
      if (report.faults.length > 0) failed.push(seed);
      if (report.faults.length > 0 || isWhole || count === 1) console.log(describeReport(report, isWhole));
      const done = seed - from + 1;
      if (done % TOLD_EVERY === 0) console.log(`${String(done)} seeds, ${String(failed.length)} with faults`);
    }
  } finally {
    await database.close();
    await cluster.remove();
  }
  console.log(
    failed.length === 0
      ? `${String(count)} seeds from ${String(from)}: no fault`
      : `${String(count)} seeds from ${String(from)}: faults in ${failed.join(", ")}`,
  );
  return failed.length;
}

const wanted = wantedFrom(process.argv.slice(2));
if (wanted === null) {
  console.error(USAGE);
  process.exitCode = 2;
} else if ((await simulate(wanted)) > 0) process.exitCode = 1;
