import type { LoggedRequest } from "../../src/sandbox/index.js";
import { breachesOfTheWireRule } from "../support/wire-rule.js";
import type { SendRow, Snapshot } from "./snapshot.js";

/** A worker that was let go on may still send what it had decided on before it was frozen (docs/guarantees.md). */
const THAWED_MS = 2_000;
/** Two processes read one clock, and do not write at once what they have read. */
const NEARLY_MS = 100;
const GIVEN_UP: readonly (string | null)[] = ["unknown: timeout", "unknown: connection_lost"];
const WORKER_LOST = "unknown: worker_lost";

/** Read off the request logs: what was sent again before a question was answered, or with other parameters. */
export function wireFaults(seen: Snapshot, thawed: readonly number[]): string[] {
  const givenUp = seen.sends
    .filter(({ outcome }) => GIVEN_UP.includes(outcome))
    .map((row) => ({ providerKey: row.provider_key ?? "", at: row.at.getTime() }));
  return seen.logs.flatMap((log) => {
    // Whoever compares the lists cancels what nobody will confirm, under keys of its own.
    const sent = log.filter(({ idempotency_key: key }) => key?.includes(":orphan:") !== true);
    const late = lateArrivals(sent, seen.sends);
    const isExcused = (entry: LoggedRequest | undefined) =>
      entry !== undefined &&
      (late.has(entry) || thawed.some((time) => isWithin(entry, time, time + THAWED_MS)));
    const bySequence = new Map(sent.map((entry) => [entry.sequence, entry]));
    return breachesOfTheWireRule(sent, givenUp).filter((breach) => {
      const [, send, last] = /request (\d+) follows (\d+)/.exec(breach) ?? [];
      return ![send, last].some((sequence) => isExcused(bySequence.get(Number(sequence))));
    });
  });
}

/**
 * Requests that lay in a socket, on a busy machine or before a frozen process, until their sender had given them up (and
 * asked), or was dead: the arrivals that no recorded send accounts for, behind a send that no arrival accounts for.
 */
function lateArrivals(log: readonly LoggedRequest[], sends: readonly SendRow[]): ReadonlySet<LoggedRequest> {
  const unaccounted = new Map<string, LoggedRequest[]>();
  for (const entry of log) {
    const key = entry.method === "POST" ? entry.idempotency_key : null;
    if (key !== null) unaccounted.set(key, [...(unaccounted.get(key) ?? []), entry]);
  }
  const loose: SendRow[] = [];
  for (const send of sends) {
    const arrivals = unaccounted.get(send.provider_key ?? "") ?? [];
    const { sent_at: sentAt, at, outcome } = send;
    const its = sentAt === null ? -1 : arrivals.findIndex((entry) => isWithin(entry, +sentAt, +at));
    if (its >= 0) arrivals.splice(its, 1);
    else if (GIVEN_UP.includes(outcome) || outcome === WORKER_LOST) loose.push(send);
  }
  const left = [...unaccounted.values()].flat();
  return new Set(
    left.filter((entry) =>
      loose.some(
        ({ attempt_id: attempt, at }) =>
          entry.idempotency_key?.includes(attempt) === true && Date.parse(entry.received_at) > +at,
      ),
    ),
  );
}

function isWithin({ received_at: at }: LoggedRequest, fromMs: number, toMs: number): boolean {
  const atMs = Date.parse(at);
  return atMs >= fromMs - NEARLY_MS && atMs <= toMs + NEARLY_MS;
}
