import type { DisputeLookupOutcome, DisputeMovement, ProviderDispute } from "../../src/domain/provider.js";
import type { Deps } from "../../src/operations/deps.js";
import type { Harness } from "./harness.js";
import { eventOf, NO_EVIDENCE, randomId, type Seeded, storeEvent, withProvider } from "./provider-events.js";

export const WITHDRAWN: DisputeMovement = {
  transactionId: "txn_1",
  amount: -10_000,
  currency: "usd",
  fee: 1_500,
};
export const REINSTATED: DisputeMovement = {
  transactionId: "txn_2",
  amount: 10_000,
  currency: "usd",
  fee: 0,
};

export function disputeOf(ours: Seeded, changes: Partial<ProviderDispute> = {}): ProviderDispute {
  return {
    id: randomId("dp"),
    chargeId: ours.objectId,
    status: "open",
    amount: 10_000,
    currency: "usd",
    reason: "fraudulent",
    livemode: false,
    movements: [],
    ...changes,
  };
}

/** A provider whose dispute is what the test makes of it. */
export class DisputeProvider {
  constructor(
    private readonly harness: Harness,
    public dispute: ProviderDispute,
  ) {}

  becomes(changes: Partial<ProviderDispute>): void {
    this.dispute = { ...this.dispute, ...changes };
  }

  get deps(): Deps {
    const getDispute = async (id: string): Promise<DisputeLookupOutcome> =>
      id === this.dispute.id
        ? { type: "found", dispute: this.dispute, evidence: NO_EVIDENCE }
        : { type: "missing", evidence: NO_EVIDENCE };
    return withProvider(this.harness.deps, { getDispute });
  }

  tells(type: string): Promise<string> {
    const { id, chargeId } = this.dispute;
    return storeEvent(this.harness, eventOf(`charge.dispute.${type}`, { id, payment_intent: chargeId }));
  }
}

/** Everything that disputes have left on a payment. */
export async function disputeRowsOf(harness: Harness, { paymentId }: Seeded) {
  const { sql } = harness.deps.db;
  const [payment] = await sql`
    select version, status, refund_reserved, disputes::text from payments where id = ${paymentId}`;
  const entries = await sql<{ fact: string; leg: number; moved: string }[]>`
    select fact, leg, debit_account || '<' || credit_account || ' ' || amount as moved from ledger_entries
     where payment_id = ${paymentId} order by fact, leg`;
  const outbox = await sql<{ type: string; sequence: number; ordinal: number; data: string }[]>`
    select type, sequence, ordinal, data::text from outbox where payment_id = ${paymentId} order by sequence, ordinal`;
  const timeline = await sql<{ told: string }[]>`
    select kind || ' ' || reason || ': ' || outcome as told from timeline where payment_id = ${paymentId} order by id`;
  const reviews = await sql<{ reason: string }[]>`select reason from reviews where payment_id = ${paymentId}`;
  return {
    version: payment?.["version"] as number,
    status: payment?.["status"] as string,
    disputes: JSON.parse((payment?.["disputes"] as string | null) ?? "[]") as Record<string, unknown>[],
    entries: entries.map((row) => `${row.fact}/${row.leg} ${row.moved}`),
    outbox: outbox.map((row) => ({ ...row, data: JSON.parse(row.data) as Record<string, unknown> })),
    timeline: timeline.map((row) => row.told),
    reviews: reviews.map((row) => row.reason),
  };
}
