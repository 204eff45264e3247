import { groupBy } from "../support/wire-rule.js";
import type { ChaosReceiver, ReceivedEvent } from "./receiver.js";
import type { OutboxRow, Snapshot, TransitionRow } from "./snapshot.js";

/** One event a fact, and each of them at the merchant's, whole and in its payment's order. */
export function eventFaults(seen: Snapshot, receiver: Pick<ChaosReceiver, "events" | "faults">): string[] {
  const received = receiver.events;
  const known = new Set(seen.outbox.map(({ id }) => id));
  const states = new Map(seen.deliveries.map(({ event_id: id, state }) => [id, state]));
  return [
    ...receiver.faults,
    ...seen.parked.map(
      (event) => `provider event ${event.event_id} ${event.type} is parked: ${event.outcome}`,
    ),
    ...factFaults(seen),
    ...[...received.keys()]
      .filter((id) => !known.has(id))
      .map((id) => `${id} was received and is in no outbox`),
    ...seen.outbox.flatMap((row) => deliveryFaults(row, received.get(row.id), states.get(row.id))),
    ...orderFaults(seen.outbox, received),
  ];
}

/** Each transition of a payment or a refund, in order, against the types of the events about it. */
function factFaults(seen: Snapshot): string[] {
  const facts = groupBy(seen.transitions, (row) => row.refund_id ?? row.payment_id);
  const events = groupBy(seen.outbox, (row) => row.data.id ?? "");
  return [...new Set([...facts.keys(), ...events.keys()])].flatMap((id) => {
    const steps = facts.get(id) ?? [];
    const told = (events.get(id) ?? []).map(({ type }) => type.split(".")[1] ?? "");
    const happened = steps.map(({ to_status: to }, at) => (at === 0 ? "created" : to));
    return [
      ...(happened.join() === told.join()
        ? []
        : [`${id} went ${happened.join()}, its events say ${told.join()}`]),
      ...(isUnbroken(steps) ? [] : [`${id} has a gap in its history: ${happened.join()}`]),
    ];
  });
}

function isUnbroken(steps: readonly TransitionRow[]): boolean {
  return steps.every(({ from_status: from }, at) => from === (steps[at - 1]?.to_status ?? null));
}

function deliveryFaults(
  row: OutboxRow,
  event: ReceivedEvent | undefined,
  state: string | undefined,
): string[] {
  if (event === undefined) return [`${row.id} ${row.type} of ${row.payment_id} was never received`];
  const { data } = JSON.parse(event.body) as { data: { object: unknown } };
  const isWhole = event.type === row.type && JSON.stringify(data.object) === JSON.stringify(row.data);
  return [
    ...(isWhole ? [] : [`${row.id} was received as ${event.body}, and is ${JSON.stringify(row.data)}`]),
    ...(event.taken > 0 ? [] : [`${row.id} was never taken`]),
    ...(state === "delivered" ? [] : [`the delivery of ${row.id} is ${state ?? "not there"}`]),
  ];
}

/** First arrivals alone: an event that is told twice may come again at any time. */
function orderFaults(outbox: readonly OutboxRow[], received: ReadonlyMap<string, ReceivedEvent>): string[] {
  return [...groupBy(outbox, (row) => row.payment_id ?? "")].flatMap(([id, rows]) => {
    const places = rows.flatMap((row) => received.get(row.id)?.place ?? []);
    const isSorted = places.every((place, at) => place > (places[at - 1] ?? -1));
    return isSorted
      ? []
      : [`the events of ${id} came in another order: ${rows.map((row) => row.type).join()}`];
  });
}
