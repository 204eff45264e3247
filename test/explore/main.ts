import { optionsFrom, runWith, WrongUsage, wholeNumber } from "../../scripts/usage.js";
import { machineOf } from "./model/machine.js";
import { theShippedCode } from "./patched.js";
import { CHARGES, EFFECTS } from "./scenarios.js";
import { search } from "./search.js";
import { storyOf } from "./story.js";

const USAGE = `npm run explore -- [--faults N] [--depth N] [--states N] [--only TEXT] [--list]

  --faults  how much goes wrong; without it, what the tests have
  --depth   no more steps than this
  --states  no more states than this a scenario (default 5000000, which takes about 3 GB)
  --only    the scenarios whose name has this text
  --list    names them
`;
const MOST_STATES = 5_000_000;

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

async function explore(words: readonly string[]): Promise<number> {
  const values = optionsFrom(words, {
    faults: { type: "string" },
    depth: { type: "string" },
    states: { type: "string" },
    only: { type: "string" },
    list: { type: "boolean" },
  });
  const count = (name: "faults" | "depth" | "states", otherwise: number) =>
    values[name] === undefined ? otherwise : wholeNumber(name, values[name], 0);
  const limits = { depth: count("depth", Number.POSITIVE_INFINITY), states: count("states", MOST_STATES) };
  const only = values.only ?? "";
  const chosen = [...CHARGES, ...EFFECTS].filter(({ name }) => name.includes(only));
  if (chosen.length === 0) {
    throw new WrongUsage(`--only: no scenario has ${JSON.stringify(only)} in its name; --list names them`);
  }
  const code = theShippedCode();
  let broken = 0;
  for (const scenario of chosen) {
    const faults = count("faults", scenario.faults);
    say(`${scenario.name}, ${faults} faults`);
    if (values.list === true) continue;
    const machine = await machineOf(code, { ...scenario, faults });
    const explored = await search(machine, limits);
    const { states, steps, seconds, complete, found } = explored;
    const rate = Math.round(states / seconds);
    const extent = complete ? "all of them" : found === null ? "stopped at the limit" : "stopped at a fault";
    say(
      `  ${states} states (${extent}), ${steps} steps, depth ${explored.depth}, ${seconds.toFixed(1)} s, ${rate} states/s`,
    );
    if (found === null) continue;
    broken += 1;
    say(storyOf(found, machine.initial));
  }
  return broken === 0 ? 0 : 1;
}

const words = process.argv.slice(2);
process.exitCode = await runWith(USAGE, words, () => explore(words));
