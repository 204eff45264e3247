import type { EarlierRuns } from "../../../src/domain/earlier-runs.js";
import type { Context } from "./context.js";
import { type AttemptRow, replaced, type Tables } from "./rows.js";
import { readAttempt } from "./store.js";

/** As src/operations/earlier-runs.ts, with the statement that it asks as src/store/attempts.ts has it. */

/** What the attempt's worker is told of the runs of its key before it. */
export function earlierRunsOf(context: Context, tables: Tables, at: number): EarlierRuns {
  const runs = placesOfEarlierRuns(context, tables, at).map((place) => {
    const { kind, state, unresolved, payment_id, refund_id } = tables.attempts[place]!.value;
    const payment = tables.payments.find(({ value }) => value.id === payment_id)!.value;
    const refund = tables.refunds.find(({ value }) => value.id === refund_id)?.value ?? null;
    return { kind, state, unresolved, paymentStatus: payment.status, refundStatus: refund?.status ?? null };
  });
  return context.shipped.judgeEarlierRuns(runs as Parameters<typeof context.shipped.judgeEarlierRuns>[0]);
}

/** Those without an answer are due, where nobody holds them. */
export function hurryEarlierRuns(context: Context, tables: Tables, at: number): Tables {
  return placesOfEarlierRuns(context, tables, at).reduce((hurried, place) => {
    const row = hurried.attempts[place]!;
    const isOpen = row.value.unresolved || row.value.state !== "completed";
    if (!isOpen || row.value.due || row.value.lease === "live") return hurried;
    const due = context.refs.attempts.of({ ...row.value, due: true });
    return { ...hurried, attempts: replaced(hurried.attempts, place, due) };
  }, tables);
}

/** None where the attempt need not know. */
function placesOfEarlierRuns(context: Context, tables: Tables, at: number): readonly number[] {
  const { shipped } = context;
  const ref = tables.attempts[at]!;
  const attempt = readAttempt(context, ref);
  const isUnsent = attempt.kind !== "charge" || shipped.isBeforeObject(attempt.state);
  if (!shipped.mindsEarlierRuns(attempt) || !isUnsent) return [];
  const isEarlier = ({ operation, idempotency_key, run }: AttemptRow) =>
    operation === ref.value.operation && idempotency_key === ref.value.idempotency_key && run < ref.value.run;
  return [...tables.attempts.keys()].filter((place) => isEarlier(tables.attempts[place]!.value));
}
