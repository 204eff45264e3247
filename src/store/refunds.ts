import type { Resolution } from "../domain/payment.js";
import type { Refund } from "../domain/refund.js";
import type { Queryable } from "./db.js";
import { rowIfAny } from "./look-ups.js";
import { REFUND_COLUMNS, type Row, refundOf, resolutionFrom } from "./rows.js";

/** A refund, and what is known while its outcome is not. */
export interface RefundView {
  readonly refund: Refund;
  readonly resolution: Resolution | null;
}

function selectRefund(db: Queryable) {
  return db`select ${db.unsafe(REFUND_COLUMNS.map((column) => `r.${column} as r_${column}`).join(", "))},
      a.wait_reason, a.unknown_since, a.due_at
    from refunds r ${rowIfAny(db, "attempts", "a", db`r.tenant_id`, db`r.attempt_id`)}`;
}

function viewOf(row: Row): RefundView {
  const refund = refundOf(row);
  if (refund === null) throw new Error("a row of refunds has no refund");
  const open = refund.status === "processing" || refund.status === "needs_review";
  return { refund, resolution: open ? resolutionFrom(row, "", refund.status === "needs_review") : null };
}

export async function readRefund(
  db: Queryable,
  tenantId: string,
  refundId: string,
): Promise<RefundView | null> {
  const [row] = await db<Row[]>`${selectRefund(db)} where r.tenant_id = ${tenantId} and r.id = ${refundId}`;
  return row === undefined ? null : viewOf(row);
}

/** Newest first; `before` is the id that the last page ended with. */
export async function listRefundsOfPayment(
  db: Queryable,
  tenantId: string,
  paymentId: string,
  page: { readonly limit: number; readonly before: string | null },
): Promise<RefundView[]> {
  const rows = await db<Row[]>`${selectRefund(db)}
    where r.payment_id = ${paymentId} and r.tenant_id = ${tenantId}
      ${page.before === null ? db`` : db`and r.id < ${page.before}`}
    order by r.payment_id desc, r.tenant_id desc, r.id desc limit ${page.limit}`;
  return rows.map(viewOf);
}
