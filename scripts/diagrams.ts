// Draws the four state machines into docs/payment-life.md, each between its markers `<!-- <name>: … -->` and
// `<!-- end of <name> -->`. With `--check` nothing is written, and a difference exits 1.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { attemptMachine } from "../src/domain/attempt-machine.js";
import { effectMachine } from "../src/domain/effect-machine.js";
import { paymentMachine } from "../src/domain/payment-machine.js";
import { refundMachine } from "../src/domain/refund-machine.js";

export const PAGE = "docs/payment-life.md";

interface Edge {
  readonly from: string;
  readonly event: string;
  readonly to: string;
}

interface Machine {
  readonly id: string;
  readonly config: { readonly initial?: unknown };
  readonly states: Readonly<
    Record<
      string,
      {
        readonly key: string;
        readonly config: { readonly on?: unknown; readonly meta?: unknown };
      }
    >
  >;
}

/** All edges in the order of the machine's own text. Throws on one that is more than an event and a target. */
export function edgesOf(machine: Machine): Edge[] {
  return Object.entries(machine.states).flatMap(([from, node]) =>
    Object.entries((node.config.on ?? {}) as Record<string, unknown>).map(([event, to]) => {
      if (typeof to !== "string" || !(to in machine.states)) {
        throw new Error(`${machine.id}: ${event} in ${from} is no plain edge and cannot be drawn`);
      }
      return { from, event, to };
    }),
  );
}

function initialOf(machine: Machine): string {
  if (typeof machine.config.initial !== "string") throw new Error(`${machine.id} has no initial state`);
  return machine.config.initial;
}

/** Edges between the same two states share an arrow: their events stand under each other. */
function arrows(edges: readonly Edge[], indent: string): string[] {
  const events = new Map<string, string[]>();
  for (const { from, event, to } of edges) {
    const arrow = `${from} --> ${to}`;
    events.set(arrow, [...(events.get(arrow) ?? []), event]);
  }
  return [...events].map(([arrow, names]) => `${indent}${arrow}: ${names.join("<br/>")}`);
}

/** States that no event leads out of. */
function finals(machine: Machine, edges: readonly Edge[]): string[] {
  return Object.keys(machine.states).filter(
    (state) => !edges.some(({ from, to }) => from === state && to !== state),
  );
}

/** A machine of statuses: of a payment or a refund. */
export function statusDiagram(machine: Machine): string {
  const edges = edgesOf(machine);
  return [
    "stateDiagram-v2",
    `    [*] --> ${initialOf(machine)}`,
    ...arrows(edges, "    "),
    ...finals(machine, edges).map((state) => `    ${state} --> [*]`),
  ].join("\n");
}

function recoveryPointOf(machine: Machine, state: string): string {
  return (machine.states[state]?.config.meta as { recoveryPoint: string }).recoveryPoint;
}

/**
 * Each recovery point is a composite state. Mermaid draws no arrow between the insides of two composites, so an edge
 * that every state of a recovery point has is drawn once, from the composite; one that only some have is refused.
 * It ends at the composite: at its first state, or at the one that its label names.
 */
export function attemptDiagram(machine: Machine): string {
  const edges = edgesOf(machine);
  const pointOf = (state: string) => recoveryPointOf(machine, state);
  const points = [...new Set(Object.keys(machine.states).map(pointOf))];
  const lines = ["stateDiagram-v2", `    [*] --> ${composite(pointOf(initialOf(machine)))}`];
  const crossing = points.flatMap((point) => crossingEdges(machine, edges, point));
  const entryOf = (point: string) => entryOfPoint(machine, crossing, point);
  for (const point of points) {
    const inside = edges.filter(({ from, to }) => pointOf(from) === point && pointOf(to) === point);
    const states = Object.keys(machine.states).filter((state) => pointOf(state) === point);
    lines.push(
      `    state "recovery point ${point}" as ${composite(point)} {`,
      `        [*] --> ${entryOf(point)}`,
      ...states.map((state) => `        ${state}`),
      ...arrows(inside, "        "),
      "    }",
    );
  }
  const lifted = crossing.map(({ from, event, to }) => {
    const isEntry = entryOf(pointOf(to)) === to;
    return { from, event: isEntry ? event : `${event} to ${to}`, to: composite(pointOf(to)) };
  });
  const last = finals(machine, edges).map((state) => `    ${composite(pointOf(state))} --> [*]`);
  return [...lines, ...arrows(lifted, "    "), ...last].join("\n");
}

/** Where a recovery point begins: with the machine, or with the first edge that comes to it from another. */
function entryOfPoint(machine: Machine, crossing: readonly Edge[], point: string): string {
  const initial = initialOf(machine);
  if (recoveryPointOf(machine, initial) === point) return initial;
  const first = crossing.find(({ to }) => recoveryPointOf(machine, to) === point);
  if (first === undefined) throw new Error(`${machine.id}: nothing leads to ${point}`);
  return first.to;
}

function composite(point: string): string {
  return `at_${point}`;
}

function crossingEdges(machine: Machine, edges: readonly Edge[], point: string): Edge[] {
  const states = Object.keys(machine.states).filter((state) => recoveryPointOf(machine, state) === point);
  const leaving = edges.filter(
    ({ from, to }) => states.includes(from) && recoveryPointOf(machine, to) !== point,
  );
  const kinds = new Map(leaving.map(({ event, to }) => [`${event} to ${to}`, { event, to }]));
  return [...kinds.values()].map(({ event, to }) => {
    const having = leaving.filter((edge) => edge.event === event && edge.to === to).map(({ from }) => from);
    const lacking = states.filter((state) => !having.includes(state));
    if (lacking.length > 0) {
      throw new Error(
        `${event} to ${to} leaves ${point}, but not from ${lacking.join(", ")}: it cannot be drawn`,
      );
    }
    return { from: composite(point), event, to };
  });
}

/** The page with all diagrams as the machines are now. Throws where a marker is missing or stands twice. */
export function withDiagrams(page: string): string {
  return [
    { name: "payment-machine", diagram: statusDiagram(paymentMachine) },
    { name: "attempt-machine", diagram: attemptDiagram(attemptMachine) },
    { name: "effect-machine", diagram: attemptDiagram(effectMachine) },
    { name: "refund-machine", diagram: statusDiagram(refundMachine) },
  ].reduce((text, { name, diagram }) => {
    const marked = new RegExp(
      `(<!-- ${name}: [^>]*-->\n)(?:(?!<!--)[\\s\\S])*(<!-- end of ${name} -->)`,
      "g",
    );
    const places = text.match(marked)?.length ?? 0;
    if (places !== 1)
      throw new Error(`${PAGE} must have the markers of ${name} once; it has them ${places} times`);
    return text.replace(marked, `$1\n\`\`\`mermaid\n${diagram}\n\`\`\`\n\n$2`);
  }, page);
}

function main(check: boolean): void {
  const page = readFileSync(PAGE, "utf8");
  const drawn = withDiagrams(page);
  if (page === drawn) {
    console.log(`diagrams: ${PAGE} shows the machines as they are`);
  } else if (check) {
    console.error(`diagrams: ${PAGE} differs from the machines; run npm run diagrams`);
    process.exitCode = 1;
  } else {
    writeFileSync(PAGE, drawn);
    console.log(`diagrams: ${PAGE} written`);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main(process.argv.includes("--check"));
