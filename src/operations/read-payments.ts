import { PawlError } from "../domain/errors.js";
import type { Payment } from "../domain/payment.js";
import { withDatabase } from "../store/db.js";
import * as store from "../store/payments.js";
import type { Caller, Deps } from "./deps.js";

export interface PageRequest {
  /** 1–100. */
  readonly limit: number;
  readonly cursor: string | null;
}

export interface Page<Item> {
  readonly data: readonly Item[];
  readonly hasMore: boolean;
  readonly nextCursor: string | null;
}

/** A cursor is the id that the last page ended with, in base64url, so that nobody builds one by hand. */
const CURSOR_SHAPE = /^[a-z]{2,4}_[0-9a-f]{32}$/;

function readCursor(cursor: string | null): string | null {
  if (cursor === null) return null;
  const id = Buffer.from(cursor, "base64url").toString("latin1");
  if (CURSOR_SHAPE.test(id)) return id;
  throw new PawlError("validation_failed", "The cursor is not one that a list has given.", {
    faults: [{ pointer: "?cursor", detail: "is not a cursor of this list" }],
  });
}

function pageOf<Item extends { readonly id: string }>(rows: readonly Item[], limit: number): Page<Item> {
  const data = rows.slice(0, limit);
  const hasMore = rows.length > limit;
  const last = data.at(-1);
  return {
    data,
    hasMore,
    nextCursor: hasMore && last !== undefined ? Buffer.from(last.id).toString("base64url") : null,
  };
}

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
  const before = readCursor(page.cursor);
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
): Promise<Page<store.TimelineEntry>> {
  await getPayment(deps, caller, paymentId);
  const after = readCursor(page.cursor);
  const rows = await withDatabase(() =>
    store.readTimeline(deps.db.sql, caller.tenantId, paymentId, { limit: page.limit + 1, after }),
  );
  return pageOf(rows, page.limit);
}

export type { TimelineEntry } from "../store/payments.js";
