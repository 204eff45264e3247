import { isDeepStrictEqual } from "node:util";
import type { LoggedRequest } from "../../src/sandbox/request-log.js";

/** A send that was recorded as timed out or lost. */
export interface GivenUp {
  readonly providerKey: string;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/**
 * The rule of sending again (docs/payment-life.md), read off the provider's request log alone: between two sends of one call stands an
 * answered look-up, unless every earlier send of it was refused before execution; and every send of one key is the
 * same request. Yields a sentence for each breach.
 */
export function breachesOfTheWireRule(
  log: readonly LoggedRequest[],
  givenUp: readonly GivenUp[] = [],
): string[] {
  const sends = log.filter((entry) => entry.method === "POST");
  const unkeyed = sends.filter((entry) => entry.idempotency_key === null);
  const byKey = groupBy(
    sends.filter((entry) => entry.idempotency_key !== null),
    (entry) => entry.idempotency_key ?? "",
  );
  return [
    ...unkeyed.map((entry) => `${entry.method} ${entry.path} was sent without a key`),
    ...[...byKey.values()].flatMap((group) => [...driftsIn(group)]),
    ...[...groupBy(sends, callOf).values()].flatMap((group) => blindSendsIn(group, log, givenUp)),
  ];
}

/** The rounds of a fence, capture or cancel have keys of their own and are one call all the same. */
function callOf(entry: LoggedRequest): string {
  return (entry.idempotency_key ?? "").replace(/:fence-\d+$/, ":fence").replace(/:(capture|cancel)-\d+$/, "");
}

function* driftsIn(sameKey: readonly LoggedRequest[]): Generator<string> {
  const [first, ...later] = sameKey;
  if (first === undefined) return;
  const shape = /^payment-attempt:att_[0-9a-f]{32}(:confirm|:(fence|capture|cancel)(-\d+)?)?$/;
  if (!shape.test(first.idempotency_key ?? "")) yield `${first.idempotency_key} is no key of an attempt`;
  for (const entry of later) {
    const same = entry.path === first.path && isDeepStrictEqual(entry.parameters, first.parameters);
    if (!same) yield `${entry.idempotency_key} was sent with other parameters (request ${entry.sequence})`;
  }
}

function blindSendsIn(
  sameCall: readonly LoggedRequest[],
  log: readonly LoggedRequest[],
  givenUp: readonly GivenUp[],
): string[] {
  return sameCall.flatMap((send, at) => {
    const earlier = sameCall.slice(0, at);
    const last = earlier.at(-1);
    if (last === undefined || earlier.every(wasRefusedBeforeExecution)) return [];
    if (arrivedLate(last, at - 1, givenUp)) return [];
    const asked = log.some(
      (entry) => entry.sequence > last.sequence && entry.sequence < send.sequence && answers(entry, send),
    );
    return asked
      ? []
      : [`${callOf(send)}: request ${send.sequence} follows ${last.sequence} without a question`];
  });
}

/**
 * Whether the `index`-th send to arrive had been given up before it did: on a starved machine a request may leave late,
 * and then the question about it, rightly, comes first.
 */
function arrivedLate(send: LoggedRequest, index: number, givenUp: readonly GivenUp[]): boolean {
  const before = givenUp.filter(
    (one) => one.providerKey === send.idempotency_key && one.at < Date.parse(send.received_at),
  );
  return before.length > index;
}

/** 401, 403 and the rate limit stand before the key layer; a refused connection never comes into the log. */
function wasRefusedBeforeExecution(entry: LoggedRequest): boolean {
  if (entry.status === 401 || entry.status === 403) return true;
  return entry.status === 429 && entry.error_code !== "lock_timeout";
}

/** Whether this was a look-up that could tell what became of the send, and was answered whole. */
function answers(entry: LoggedRequest, send: LoggedRequest): boolean {
  const whole = entry.fault === null || ["slow", "drip", "hang"].includes(entry.fault.type);
  if (entry.method !== "GET" || entry.status !== 200 || entry.abandoned || !whole) return false;
  if (send.call === "payment_intents.create") return entry.call === "payment_intents.list";
  if (send.call === "refunds.create")
    return entry.call === "refunds.list" || entry.call === "refunds.retrieve";
  return entry.call === "payment_intents.retrieve" && entry.object_id === send.object_id;
}

export function groupBy<T>(items: readonly T[], nameOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(nameOf(item));
    if (group === undefined) groups.set(nameOf(item), [item]);
    else group.push(item);
  }
  return groups;
}
