import { parseArgs } from "node:util";
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

const { values } = parseArgs({
  options: {
    faults: { type: "string" },
    depth: { type: "string" },
    states: { type: "string" },
    only: { type: "string" },
    list: { type: "boolean" },
    help: { type: "boolean" },
  },
});

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

function count(text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise;
  if (!/^\d+$/.test(text)) throw new Error(`not a whole number: ${text}`);
  return Number(text);
}

async function explore(): Promise<number> {
  const chosen = [...CHARGES, ...EFFECTS].filter(({ name }) => name.includes(values.only ?? ""));
  const code = theShippedCode();
  let broken = 0;
  for (const scenario of chosen) {
    const faults = count(values.faults, scenario.faults);
    say(`${scenario.name}, ${faults} faults`);
    if (values.list === true) continue;
    const machine = await machineOf(code, { ...scenario, faults });
    const depth = count(values.depth, Number.POSITIVE_INFINITY);
    const explored = await search(machine, { depth, states: count(values.states, MOST_STATES) });
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
  return broken === 0 && chosen.length > 0 ? 0 : 1;
}

if (values.help === true) say(USAGE);
else process.exitCode = await explore();
