import { expect, test } from "vitest";
import { machineOf } from "./model/machine.js";
import type { Scenario } from "./model/scenario.js";
import type { Step } from "./model/step.js";
import type { World } from "./model/world.js";
import { type Patch, thePatchedCode, theShippedCode } from "./patched.js";
import { type Searchable, search } from "./search.js";
import { plotOf, storyOf } from "./story.js";

/** A test a scenario: all its states are searched, and none of them breaks anything. Yields what was reached in all. */
export function exploreAll(scenarios: readonly Scenario[], timeoutMs: number): ReadonlySet<string> {
  const reached = new Set<string>();
  test.each(scenarios)("in $name, with $faults faults", { timeout: timeoutMs }, async (scenario) => {
    const machine = await machineOf(theShippedCode(), scenario);
    const explored = await search(watched(machine, (world) => note(world, reached)));
    const { states, depth, seconds, found } = explored;
    process.stdout.write(`${scenario.name}: ${states} states, depth ${depth}, ${seconds.toFixed(1)} s\n`);
    expect(found === null ? "" : `\n${storyOf(found, machine.initial)}\n`).toBe("");
    expect(explored.complete).toBe(true);
    expect(states).toBeGreaterThan(MANY);
  });
  return reached;
}

/** A search that ends at once has looked at nothing. */
const MANY = 1_000;

/** What goes wrong first where the shipped code is patched; nothing: no line. */
export async function plotWithout(patches: readonly Patch[], scenario: Scenario): Promise<readonly string[]> {
  const machine = await machineOf(await thePatchedCode(patches), scenario);
  const { found } = await search(machine, { states: MOST_STATES });
  return found === null ? [] : plotOf(found);
}

/** What is to be found is found long before. */
const MOST_STATES = 300_000;

/** Everything that the tables and Stripe come to, without who is at work. */
export async function reachedIn(scenario: Scenario): Promise<ReadonlySet<string>> {
  const reached = new Set<string>();
  const machine = await machineOf(theShippedCode(), scenario);
  const explored = await search(watched(machine, (world) => void reached.add(standingOf(world))));
  expect(explored.complete).toBe(true);
  return reached;
}

function watched(machine: Searchable<World, Step>, see: (world: World) => void): Searchable<World, Step> {
  return {
    ...machine,
    faultOf(world) {
      see(world);
      return machine.faultOf(world);
    },
  };
}

function note({ tables }: World, reached: Set<string>): void {
  for (const { value } of tables.attempts) reached.add(`${value.kind} ${value.state}`);
  for (const { value } of tables.payments) reached.add(`payment ${value.status}`);
  for (const { value } of tables.refunds) reached.add(`refund of ${value.status}`);
}

function standingOf({ tables, stripe, faults, moment }: World): string {
  const attempts = tables.attempts.map(
    ({ value }) => `${value.state} ${value.unresolved} ${value.key_spent}`,
  );
  const payments = tables.payments.map(({ value }) => value.status);
  const intents = stripe.value.intents.map(({ status }) => status);
  const keys = stripe.value.saved.map(({ key, reply }) => `${key} ${reply.status}`);
  return JSON.stringify([faults, moment, attempts, payments, intents, keys]);
}
