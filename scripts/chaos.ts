// `npm run chaos -- --minutes N`: real processes under load, killed again and again (docs/guarantees.md, "Real deaths").
// Exit 1 when something was lost, doubled or left undone; the logs of all processes are then kept.
import { describeReport } from "../test/chaos/describe-report.js";
import { runChaos } from "../test/chaos/run.js";
import { optionsFrom, runWith, WrongUsage, wholeNumber } from "./usage.js";

const USAGE = `npm run chaos -- --minutes N [--seed S] [--callers C] [--keep]

  --minutes N   how long there are blows; settling comes after it
  --seed S      draws the same blows in the same order (default: a new one, printed)
  --callers C   how many callers there are at once (12)
  --keep        the logs of all processes stay, also where there is no fault`;

const BETWEEN = 20;
const MINUTE_MS = 60_000;
const MOST_SEED = 2 ** 31;

interface Wanted {
  readonly minutes: number;
  readonly seed: number;
  readonly callers: number;
  readonly keepLogs: boolean;
}

/** Throws WrongUsage. */
function wantedFrom(words: readonly string[]): Wanted {
  const { minutes, seed, callers, keep } = optionsFrom(words, {
    minutes: { type: "string" },
    seed: { type: "string" },
    callers: { type: "string" },
    keep: { type: "boolean" },
  });
  if (minutes === undefined) throw new WrongUsage("--minutes is needed: for how long");
  const long = Number(minutes);
  if (!(long > 0 && Number.isFinite(long))) {
    throw new WrongUsage(`--minutes: must be a number above 0, and is ${JSON.stringify(minutes)}`);
  }
  return {
    minutes: long,
    seed: wholeNumber("seed", seed ?? String(Date.now() % MOST_SEED), 0),
    callers: wholeNumber("callers", callers ?? "12"),
    keepLogs: keep === true,
  };
}

async function chaos(wanted: Wanted): Promise<number> {
  const endsAt = Date.now() + wanted.minutes * MINUTE_MS;
  const report = await runChaos({
    ...wanted,
    between: BETWEEN,
    goesOn: () => Date.now() < endsAt,
    say: (line) => console.log(line),
  });
  console.log(describeReport(report));
  return report.faults.length > 0 ? 1 : 0;
}

const words = process.argv.slice(2);
process.exitCode = await runWith(USAGE, words, () => chaos(wantedFrom(words)));
