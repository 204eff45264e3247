import { machineOf } from "./model/machine.js";
import { thePatchedCode } from "./patched.js";
import { RULES } from "./rules.js";
import { search } from "./search.js";
import { storyOf } from "./story.js";
for (const rule of RULES) {
  if (process.argv[2] && !rule.name.includes(process.argv[2])) continue;
  const t = performance.now();
  const machine = await machineOf(await thePatchedCode(rule.patches), rule.scenario);
  const explored = await search(machine, {states: 600_000});
  console.log("==", rule.name);
  console.log(storyOf(explored, machine.initial));
  console.log(explored.states, explored.complete, (performance.now()-t)/1000);
}
