import type { EndState, EventRow } from "./end-state.js";
import type { World } from "./world.js";

/** One event a fact, and each of them at its receiver, in the order of the facts. */
export function eventFaults(rows: EndState, world: World): string[] {
  return [
    ...rows.payments.flatMap(({ id, status }) => historyFaults(id, status, rows)),
    ...rows.refunds.flatMap(({ id, status }) => refundHistoryFaults(id, status, rows)),
    ...rows.providerEvents
      .filter(
        (event) =>
          event.state !== "applied" && !isOfLost(event, rows, world) && !isOfNobody(event, rows, world),
      )
      .map((event) => `${event.type} ${event.event_id} is ${event.state}: ${event.outcome ?? ""}`),
    ...deliveryFaults(rows, world),
  ];
}

/** Of an object whose marks were made to name another attempt, and that no row has by its id: a person sees it parked. */
function isOfNobody(
  { object_id: id, state }: EndState["providerEvents"][number],
  rows: EndState,
  world: World,
): boolean {
  const isKnown = rows.attempts.some((attempt) => attempt.provider_payment_id === id);
  return state === "parked" && world.tampered.has(id, "marks") && !isKnown;
}

/** Of an object that stands for nothing any more: its row was lost, and no money moved on it. */
function isOfLost(
  { object_id: id }: EndState["providerEvents"][number],
  rows: EndState,
  world: World,
): boolean {
  const intent = world.model.intents.get(id);
  const refund = world.model.refunds.get(id);
  const isWithoutMoney = intent?.captured === 0 && intent.capturable === 0;
  const attemptId = refund?.status === "failed" ? refund.attemptId : isWithoutMoney ? intent.attemptId : null;
  if (attemptId === null) return false;
  const isLost = world.restore?.loss?.attempts.has(attemptId) ?? false;
  return isLost && !rows.attempts.some((attempt) => attempt.id === attemptId);
}

function historyFaults(paymentId: string, status: string, rows: EndState): string[] {
  const steps = rows.transitions.filter((row) => row.payment_id === paymentId && row.refund_id === null);
  const path = steps.map((row) => row.to_status);
  const hasGap = steps.some((row, at) => row.from_status !== (path[at - 1] ?? null));
  const facts = path.map((to, at) => `payment.${at === 0 ? "created" : String(to)}`);
  const told = rows.events
    .filter((event) => event.payment_id === paymentId && event.type.startsWith("payment."))
    .map((event) => event.type);
  return [
    ...(hasGap ? [`${paymentId} has a gap in its history: ${path.join(" → ")}`] : []),
    ...(path.at(-1) === status ? [] : [`${paymentId} is ${status}, its history says ${String(path.at(-1))}`]),
    ...(facts.join() === told.join()
      ? []
      : [`${paymentId} went ${facts.join()}, its events say ${told.join()}`]),
  ];
}

function refundHistoryFaults(refundId: string, status: string, rows: EndState): string[] {
  const path = rows.transitions.filter((row) => row.refund_id === refundId).map((row) => row.to_status);
  const facts = path.map((to, at) => `refund.${at === 0 ? "created" : String(to)}`);
  const told = rows.events.filter((event) => isAbout(event, refundId)).map((event) => event.type);
  return [
    ...(path.at(-1) === status ? [] : [`${refundId} is ${status}, its history says ${String(path.at(-1))}`]),
    ...(facts.join() === told.join()
      ? []
      : [`${refundId} went ${facts.join()}, its events say ${told.join()}`]),
  ];
}

function isAbout(event: EventRow, refundId: string): boolean {
  return event.type.startsWith("refund.") && event.data.id === refundId;
}

/** By the receivers' own log: each event at least once, always the same, and first in the order of its payment's facts. */
function deliveryFaults(rows: EndState, world: World): string[] {
  const { arrived } = world.receivers;
  const faults: string[] = [];
  const bodies = new Map<string, string>();
  for (const { url, eventId, body } of arrived) {
    const known = bodies.get(`${url} ${eventId}`);
    if (known !== undefined && known !== body) faults.push(`${eventId} arrived at ${url} with two bodies`);
    bodies.set(`${url} ${eventId}`, body);
  }
  for (const event of rows.events) {
    const name = `${urlOf(event.tenant_id)} ${event.id}`;
    if (!bodies.has(name)) faults.push(`${event.type} ${event.id} never arrived`);
    bodies.delete(name);
  }
  // A fact that was lost with its row may be told again, under another id.
  const lost = world.restore?.loss?.events ?? new Set<string>();
  const strange = [...bodies.keys()].filter((name) => !lost.has(name.split(" ").at(-1) ?? ""));
  faults.push(...strange.map((name) => `${name} arrived and is no event of theirs`));
  for (const { id, tenant_id } of rows.payments) {
    const wanted = rows.events.filter((event) => event.payment_id === id).map((event) => event.id);
    const first = new Set(arrived.filter((one) => one.url === urlOf(tenant_id)).map((one) => one.eventId));
    const told = [...first].filter((eventId) => wanted.includes(eventId));
    if (told.join() !== wanted.join())
      faults.push(`events of ${id} arrived as ${told.join()}, not ${wanted.join()}`);
  }
  const open = rows.deliveries.filter((delivery) => delivery.state !== "delivered");
  return [...faults, ...open.map((one) => `${one.event_id} to ${one.endpoint_id} is ${one.state}`)];
}

function urlOf(tenantId: string): string {
  return `https://${tenantId}.example`;
}
