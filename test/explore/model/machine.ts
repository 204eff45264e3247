import type { Code } from "../patched.js";
import { followersOf, type Searchable } from "../search.js";
import { contextOf } from "./context.js";
import { ENVIRONMENT, time } from "./environment.js";
import { brokenIn, isEnd } from "./invariants.js";
import { recovers } from "./recovery.js";
import type { Scenario } from "./scenario.js";
import { startOf } from "./start.js";
import type { Step, To } from "./step.js";
import { workers } from "./workers.js";
import { keyOf, type World } from "./world.js";

/** The scenario as a state machine, driven by `code`. */
export async function machineOf(code: Code, scenario: Scenario): Promise<Searchable<World, Step>> {
  const context = contextOf(code, scenario);
  const machine: Searchable<World, Step> = {
    initial: startOf(context),
    keyOf,
    follow(world, to) {
      const tell =
        (comesByItself: boolean): To =>
        (next, says, fault = null) =>
          to(next, { says, fault, isProgress: comesByItself && next.faults === world.faults });
      workers(context, world, tell(true));
      recovers(context, world, tell(true));
      time(context, world, tell(true));
      for (const actor of ENVIRONMENT) actor(context, world, tell(false));
    },
    faultOfStep: (step) => step.fault,
    faultOf: (world) => brokenIn(context, world),
    isEnd,
    isProgress: (step) => step.isProgress,
  };
  const initial = scenario.from === null ? machine.initial : await faultless(machine, scenario.from);
  context.start.tables = initial.tables;
  return { ...machine, initial };
}

const LONGEST_PREFIX = 60;

/** The first state that fits on the way on which nothing goes wrong, each first step taken. */
async function faultless(machine: Searchable<World, Step>, fits: (world: World) => boolean): Promise<World> {
  let world = machine.initial;
  for (let steps = 0; steps < LONGEST_PREFIX; steps += 1) {
    if (fits(world)) return world;
    const followers = await followersOf(machine, world);
    const next = followers.find(
      ({ state }) => state.faults === world.faults && state.moment === world.moment,
    );
    if (next === undefined) break;
    world = next.state;
  }
  throw new Error("no faultless life begins as the scenario wants it");
}
