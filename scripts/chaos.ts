// `npm run chaos -- --minutes N`: real processes under load, killed again and again (docs/guarantees.md, "Real deaths").
// Exit 1 when something was lost, doubled or left undone; the logs of all processes are then kept.
import { parseArgs } from "node:util";
import { describeReport } from "../test/chaos/describe-report.js";
import { runChaos } from "../test/chaos/run.js";

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

/** Null: what was typed makes no sense. */
function wantedFrom(words: readonly string[]): Wanted | null {
  try {
    const { values } = parseArgs({
      args: [...words],
      options: {
        minutes: { type: "string" },
        seed: { type: "string" },
        callers: { type: "string" },
        keep: { type: "boolean", default: false },
      },
    });
    const { minutes, seed = String(Date.now() % MOST_SEED), callers = "12", keep: keepLogs } = values;
    const wanted = { minutes: Number(minutes), seed: Number(seed), callers: Number(callers), keepLogs };
    const isSound =
      wanted.minutes > 0 && Number.isSafeInteger(wanted.seed) && Number.isSafeInteger(wanted.callers);
    return isSound && wanted.callers > 0 ? wanted : null;
  } catch {
    return null;
  }
}

const wanted = wantedFrom(process.argv.slice(2));
if (wanted === null) {
  console.error(USAGE);
  process.exitCode = 2;
} else {
  const endsAt = Date.now() + wanted.minutes * MINUTE_MS;
  const report = await runChaos({
    ...wanted,
    between: BETWEEN,
    goesOn: () => Date.now() < endsAt,
    say: (line) => console.log(line),
  });
  console.log(describeReport(report));
  if (report.faults.length > 0) process.exitCode = 1;
}
