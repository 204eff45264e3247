import type { Step } from "./model/step.js";
import type { World } from "./model/world.js";
import type { Found } from "./search.js";

/** The trace in words: a line a step, with what it has changed, and what is broken at its end. */
export function storyOf({ fault, trace }: Found<World, Step>, initial: World): string {
  let before = initial;
  const lines = trace.map(({ step, state }, at) => {
    const changes = changesBetween(before, state);
    before = state;
    const changed = changes.length === 0 ? "" : ` [${changes.join("; ")}]`;
    return `${String(at + 1).padStart(4)}. ${step.says()}${changed}`;
  });
  return [...lines, `   => ${fault}`].join("\n");
}

/** The same without what was changed. */
export function plotOf({ fault, trace }: Found<World, Step>): readonly string[] {
  return [...trace.map(({ step }) => step.says()), `=> ${fault}`];
}

/** What a reader must know of a state. */
function facts({ tables, stripe }: World): Map<string, string> {
  const known = new Map<string, string>();
  for (const { value } of tables.payments) known.set(value.id, value.status);
  for (const { value } of tables.attempts) known.set(`${value.kind} of ${value.payment_id}`, value.state);
  for (const { value } of tables.refunds) known.set(value.id, value.status);
  for (const [orderId, holder] of Object.entries(tables.orders.value))
    known.set(orderId, `held by ${holder}`);
  for (const intent of stripe.value.intents) known.set(intent.id, intent.status);
  for (const refund of stripe.value.refunds) known.set(refund.id, refund.status);
  return known;
}

function changesBetween(before: World, after: World): string[] {
  const [old, now] = [facts(before), facts(after)];
  const gone = [...old.keys()].filter((name) => !now.has(name)).map((name) => `${name}: gone`);
  const changed = [...now].filter(([name, fact]) => old.get(name) !== fact);
  return [...changed.map(([name, fact]) => `${name}: ${fact}`), ...gone];
}
