import type { Step } from "./model/step.js";
import type { World } from "./model/world.js";
import type { Explored } from "./search.js";

/** The trace in words: a line a step, with what it changed. */
export function storyOf({ found, states, depth }: Explored<World, Step>, initial: World): string {
  if (found === null) return `nothing found in ${states} states, ${depth} steps deep`;
  let before = initial;
  const lines = found.trace.map(({ step, state }, at) => {
    const changes = changesBetween(before, state);
    before = state;
    return `${String(at + 1).padStart(3)}. ${step.says()}${changes.length === 0 ? "" : ` [${changes.join("; ")}]`}`;
  });
  return [...lines, `  => ${found.fault}`].join("\n");
}

/** What a reader must know of a state. */
function facts({ tables, stripe }: World): Map<string, string> {
  const known = new Map<string, string>();
  for (const { value } of tables.payments) known.set(value.id, value.status);
  for (const { value } of tables.attempts) known.set(`${value.kind} of ${value.payment_id}`, value.state);
  for (const { value } of tables.refunds) known.set(value.id, value.status);
  for (const [orderId, holder] of Object.entries(tables.orders.value)) known.set(`order ${orderId}`, `held by ${holder}`);
  for (const intent of stripe.value.intents) known.set(intent.id, intent.status);
  for (const refund of stripe.value.refunds) known.set(refund.id, refund.status);
  return known;
}

function changesBetween(before: World, after: World): string[] {
  const [old, now] = [facts(before), facts(after)];
  const gone = [...old.keys()].filter((name) => !now.has(name)).map((name) => `${name}: gone`);
  return [...[...now].filter(([name, fact]) => old.get(name) !== fact).map(([name, fact]) => `${name}: ${fact}`), ...gone];
}
