// `npm run simulate`: seeded simulations of the real operations and workers on a PostgreSQL of their own
// (test/simulation/README.md). Exit 1 when a seed shows a fault.
import { describeReport } from "../test/simulation/describe-report.js";
import { runSeed } from "../test/simulation/run-seed.js";
import { openSimulatedDatabase } from "../test/simulation/simulated-database.js";
import { Sums } from "../test/simulation/sums.js";
import { startCluster } from "../test/support/postgres-cluster.js";
import { optionsFrom, runWith, WrongUsage, wholeNumber } from "./usage.js";

const USAGE = `npm run simulate -- [--seed N | --from N --seeds M] [--payments P] [--story]

  --seed N     one seed, with the last steps of its story where it shows a fault
  --seeds M    so many seeds (100)
  --from N     the first of them (1)
  --payments P so many payments in each, in place of the few that a seed draws
  --story      the whole story, whatever it shows`;

/** How often a long run says that it goes on. */
const TOLD_EVERY = 100;

interface Wanted {
  readonly from: number;
  readonly count: number;
  readonly isWhole: boolean;
  readonly payments: number | undefined;
}

/** False once whoever was reading (`… | head`) has gone: then there is nobody to run for. */
let isRead = true;
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  isRead = false;
});

/** Throws WrongUsage. */
function wantedFrom(words: readonly string[]): Wanted {
  const {
    seed,
    seeds,
    from,
    story,
    payments: many,
  } = optionsFrom(words, {
    seed: { type: "string" },
    seeds: { type: "string" },
    from: { type: "string" },
    story: { type: "boolean" },
    payments: { type: "string" },
  });
  const isWhole = story === true;
  const payments = many === undefined ? undefined : wholeNumber("payments", many);
  if (seed === undefined) {
    return {
      from: wholeNumber("from", from ?? "1"),
      count: wholeNumber("seeds", seeds ?? "100"),
      isWhole,
      payments,
    };
  }
  if (seeds !== undefined || from !== undefined)
    throw new WrongUsage("--seed is one seed, without --from and --seeds");
  return { from: wholeNumber("seed", seed), count: 1, isWhole, payments };
}

async function simulate({ from, count, isWhole, payments }: Wanted): Promise<number> {
  const cluster = await startCluster({ durable: false });
  const database = await openSimulatedDatabase(cluster.url);
  const failed: number[] = [];
  const sums = new Sums();
  let done = 0;
  try {
    for (let seed = from; seed < from + count && isRead; seed += 1) {
      const report = await runSeed(seed, { database, ...(payments === undefined ? {} : { payments }) });
      sums.add(report);
      if (report.faults.length > 0) failed.push(seed);
      if (report.faults.length > 0 || isWhole || count === 1) console.log(describeReport(report, isWhole));
      done = seed - from + 1;
      if (done % TOLD_EVERY === 0) console.log(`${String(done)} seeds, ${String(failed.length)} with faults`);
    }
  } finally {
    await database.close();
    await cluster.remove();
  }
  const found = failed.length === 0 ? "no fault" : `faults in ${failed.join(", ")}`;
  console.log(`${String(done)} seeds from ${String(from)} (${String(sums)}): ${found}`);
  return failed.length;
}

const words = process.argv.slice(2);
process.exitCode = await runWith(USAGE, words, async () => ((await simulate(wantedFrom(words))) > 0 ? 1 : 0));
