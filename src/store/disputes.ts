import type { KeptDispute } from "../domain/dispute.js";
import type { Payment } from "../domain/payment.js";
import type { Queryable } from "./db.js";
import type { Row } from "./rows.js";

/** Writes what is known of the payment's disputes now. `payment`: as it was read under its row's lock. */
export async function writeDisputes(
  db: Queryable,
  payment: Payment,
  disputes: readonly KeptDispute[],
  updatedAt: Date,
): Promise<void> {
  const written = await db<Row[]>`
    update payments
       set disputes = ${JSON.stringify(disputes)}::text::json, version = version + 1,
           updated_at = ${updatedAt.toISOString()}
     where tenant_id = ${payment.tenantId} and id = ${payment.id} and version = ${payment.version}
    returning id`;
  if (written.length !== 1) throw new Error(`payment ${payment.id} was written without its lock`);
}
