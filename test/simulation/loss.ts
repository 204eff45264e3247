import type { Sql } from "../../src/store/db.js";
import { really } from "./host.js";
import { nameOf } from "./plans.js";
import type { SentCall } from "./wire-log.js";

/** Which calls an attempt's row says that it has sent, or is about to. */
type SentCalls = ReadonlySet<string>;

/** What is in no row any more since an older state of the database was put back. */
export interface Loss {
  /** The state is of this moment. */
  readonly keptAtMs: number;
  readonly restoredAtMs: number;
  /** Of rows that were lost. */
  readonly attempts: ReadonlySet<string>;
  readonly payments: ReadonlySet<string>;
  readonly events: ReadonlySet<string>;
  readonly reviews: ReadonlySet<string>;
  /** By attempts that were kept: what their rows say. */
  readonly sentCalls: ReadonlyMap<string, SentCalls>;
  /** By keys that were kept with their answer. */
  readonly answers: ReadonlyMap<string, string>;
}

/** To be called right before the rows are put back. */
export function readLoss(sql: Sql, moments: Pick<Loss, "keptAtMs" | "restoredAtMs">): Promise<Loss> {
  return really(async () => {
    const lostIds = async (table: string) => {
      const rows = await sql<{ id: string }[]>`
        select id from ${sql(`public.${table}`)} except select id from ${sql(`kept.${table}`)}`;
      return new Set(rows.map((row) => row.id));
    };
    const attempts = await sql<AttemptRow[]>`select * from kept.attempts`;
    const keys = await sql<KeyRow[]>`select * from kept.idempotency_keys where state = 'completed'`;
    return {
      ...moments,
      attempts: await lostIds("attempts"),
      payments: await lostIds("payments"),
      events: await lostIds("outbox"),
      reviews: await lostIds("reviews"),
      sentCalls: new Map(attempts.map((row) => [row.id, sentCallsOf(row)])),
      answers: new Map(
        keys.map((row) => [
          nameOf(row.tenant_id, row.operation, row.key),
          `${String(row.response_status)} ${row.response_body}`,
        ]),
      ),
    };
  });
}

interface AttemptRow {
  readonly id: string;
  readonly state: string;
  readonly confirm_first_sent_at: string | null;
  readonly fence_first_sent_at: string | null;
}

interface KeyRow {
  readonly tenant_id: string;
  readonly operation: string;
  readonly key: string;
  readonly response_status: number;
  readonly response_body: string;
}

/** `started` and `charge_created` say that every send of the call behind them was refused. */
function sentCallsOf(row: AttemptRow): SentCalls {
  const { state, confirm_first_sent_at: confirmed, fence_first_sent_at: fenced } = row;
  const sent = {
    create: state !== "started",
    confirm: confirmed !== null && state !== "charge_created",
    fence: fenced !== null,
    effect: state !== "started",
  };
  return new Set(Object.entries(sent).flatMap(([call, isSent]) => (isSent ? [call] : [])));
}

/** `payment-attempt:<attempt>`, and behind it which of a charge's calls it is. */
const KEY = /^payment-attempt:([^:]+)(?::(confirm|fence))?/;

export function attemptOfKey(key: string): string | null {
  return KEY.exec(key)?.[1] ?? null;
}

/**
 * The earlier send is in no row that the later sender could have read: it was lost with its row, which a client's next
 * try then made anew, or the sender was at work before it could know of the restore and the row says nothing of it.
 */
export function isForgotten(loss: Loss, earlier: SentCall, send: SentCall): boolean {
  const { keptAtMs, restoredAtMs } = loss;
  // What a process sends from memory, before it knows, is of the time that was lost, too.
  const isOfLostTime = earlier.atMs > keptAtMs && (earlier.atMs <= restoredAtMs || earlier.isUnaware);
  if (!isOfLostTime || send.atMs < restoredAtMs) return false;
  const attemptId = attemptOfKey(send.key);
  if (attemptId === null) return false;
  if (loss.attempts.has(attemptId)) return true;
  if (!send.isUnaware) return false;
  const kind = /:(confirm|fence)/.exec(send.key)?.[1] ?? (send.call === "create" ? "create" : "effect");
  return loss.sentCalls.get(attemptId)?.has(kind) !== true;
}
