import { PawlError } from "../domain/errors.js";
import type { AccountBalance } from "../domain/ledger.js";
import { withDatabase } from "../store/db.js";
import * as store from "../store/ledger.js";
import type { Caller, Deps } from "./deps.js";
import type { Page, PageRequest } from "./paging.js";
import { getPayment } from "./read-payments.js";

/** A cursor is the entry that the last page ended with, in base64url: its leg, then its fact. */
const CURSOR_SHAPE = /^([1-9]\d{0,3}):([\x21-\x7e]{1,300})$/;

function readCursor(cursor: string | null): store.EntryName | null {
  if (cursor === null) return null;
  const [, leg, fact] = CURSOR_SHAPE.exec(Buffer.from(cursor, "base64url").toString("latin1")) ?? [];
  if (leg !== undefined && fact !== undefined) return { leg: Number(leg), fact };
  throw new PawlError("validation_failed", "The cursor is not one that a list has given.", {
    faults: [{ pointer: "?cursor", detail: "is not a cursor of this list" }],
  });
}

function cursorOf({ leg, fact }: store.EntryName): string {
  return Buffer.from(`${leg}:${fact}`).toString("base64url");
}

/** Every account of the tenant with any movement, exact at one moment; by currency and account. */
export function getBalances(deps: Deps, caller: Caller): Promise<readonly AccountBalance[]> {
  return withDatabase(() => store.readBalances(deps.db.sql, caller.tenantId));
}

/** A payment's entries, oldest first. Throws not_found, for another tenant's payment too. */
export async function listLedgerEntries(
  deps: Deps,
  caller: Caller,
  paymentId: string,
  page: PageRequest,
): Promise<Page<store.PostedEntry>> {
  const after = readCursor(page.cursor);
  await getPayment(deps, caller, paymentId);
  const rows = await withDatabase(() =>
    store.readEntries(deps.db.sql, caller.tenantId, paymentId, { limit: page.limit + 1, after }),
  );
  const data = rows.slice(0, page.limit);
  const hasMore = rows.length > page.limit;
  const last = data.at(-1);
  return { data, hasMore, nextCursor: hasMore && last !== undefined ? cursorOf(last) : null };
}

export type { PostedEntry } from "../store/ledger.js";
