import { PawlError } from "../domain/errors.js";
import type { Payment } from "../domain/payment.js";
import type { TimelineEntry } from "../domain/timeline-entry.js";
import { withDatabase } from "../store/db.js";
import * as store from "../store/payments.js";
import type { Caller, Deps } from "./deps.js";
import { type Page, type PageRequest, pageOf, readCursor } from "./paging.js";

/** Throws not_found, for another tenant's payment too. */
export async function getPayment(deps: Deps, caller: Caller, paymentId: string): Promise<Payment> {
  const payment = await withDatabase(() => store.readPayment(deps.db.sql, caller.tenantId, paymentId));
  if (payment === null) throw new PawlError("not_found", "There is no payment with this id.");
  return payment;
}

/** Newest first. */
export async function listPayments(
  deps: Deps,
  caller: Caller,
  filter: store.PaymentFilter,
  page: PageRequest,
): Promise<Page<Payment>> {
  const before = readCursor(page.cursor, "pay");
  const rows = await withDatabase(() =>
    store.listPayments(deps.db.sql, caller.tenantId, filter, { limit: page.limit + 1, before }),
  );
  return pageOf(rows, page.limit);
}

/** Oldest first: every transition, every abnormal send and every question. */
export async function getTimeline(
  deps: Deps,
  caller: Caller,
  paymentId: string,
  page: PageRequest,
): Promise<Page<TimelineEntry>> {
  await getPayment(deps, caller, paymentId);
  const after = readCursor(page.cursor, "tl");
  const rows = await withDatabase(() =>
    store.readTimeline(deps.db.sql, caller.tenantId, paymentId, { limit: page.limit + 1, after }),
  );
  return pageOf(rows, page.limit);
}
