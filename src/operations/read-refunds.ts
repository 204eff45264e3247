import { PawlError } from "../domain/errors.js";
import { withDatabase } from "../store/db.js";
import { listRefundsOfPayment, type RefundView, readRefund } from "../store/refunds.js";
import type { Caller, Deps } from "./deps.js";
import { type Page, type PageRequest, pageOf, readCursor } from "./paging.js";
import { getPayment } from "./read-payments.js";

/** Throws not_found, for another tenant's refund too. */
export async function getRefund(deps: Deps, caller: Caller, refundId: string): Promise<RefundView> {
  const view = await withDatabase(() => readRefund(deps.db.sql, caller.tenantId, refundId));
  if (view === null) throw new PawlError("not_found", "There is no refund with this id.");
  return view;
}

/** Newest first. Throws not_found where the payment is. */
export async function listRefunds(
  deps: Deps,
  caller: Caller,
  paymentId: string,
  page: PageRequest,
): Promise<Page<RefundView>> {
  await getPayment(deps, caller, paymentId);
  const before = readCursor(page.cursor, "re");
  const rows = await withDatabase(() =>
    listRefundsOfPayment(deps.db.sql, caller.tenantId, paymentId, { limit: page.limit + 1, before }),
  );
  const withIds = rows.map((row) => ({ ...row, id: row.refund.id }));
  return pageOf(withIds, page.limit);
}
