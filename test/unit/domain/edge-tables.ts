export type Edges<State extends string, Event extends string> = Record<State, Partial<Record<Event, State>>>;

/** All pairs of a machine's states and events, with the target that the table has for it, or null. */
export function pairs<State extends string, Event extends string>(
  states: readonly string[],
  events: readonly Event[],
  edges: Edges<State, Event>,
): { from: State; event: Event; to: State | null }[] {
  return states.flatMap((from) =>
    events.map((event) => ({ from: from as State, event, to: edges[from as State][event] ?? null })),
  );
}

/** The events that the machine itself knows in a state: the walk above must not miss one. */
export function ownEvents(
  machine: { states: Record<string, { ownEvents: readonly string[] }> },
  state: string,
): string[] {
  return [...(machine.states[state]?.ownEvents ?? [])].sort();
}
