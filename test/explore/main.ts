import { machineOf } from "./model/machine.js";
import { theShippedCode } from "./patched.js";
import * as scenarios from "./scenarios.js";
import { search } from "./search.js";
import { storyOf } from "./story.js";

const [name, faults, limit, extra] = process.argv.slice(2);
const scenario = (scenarios as any)[name!];
const machine = await machineOf(theShippedCode(), { ...scenario, faults: faults==='d'?scenario.faults:Number(faults), ...JSON.parse(extra ?? "{}") });
const explored = await search(machine, {states: Number(limit)});
console.log(storyOf(explored, machine.initial));
console.log(explored.states, explored.steps, explored.depth, explored.seconds, Math.round(explored.states/explored.seconds), explored.complete, process.memoryUsage().rss>>20);
const c = (machine as any).context;
if(process.env.SIZES) for (const [k,v] of Object.entries(c.refs)) console.log(k, (v as any).size, k==="requests"||k==="payments"? "":"");
if (process.env.DUMP) for (const r of (c.refs[process.env.DUMP] as any).all().slice(-5)) console.log(r);
