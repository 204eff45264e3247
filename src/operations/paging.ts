import { PawlError } from "../domain/errors.js";
import type { IdPrefix } from "../lib/ids.js";

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

/**
 * The id that the last page ended with. Throws validation_failed for what no list of such ids has given: behind another
 * list's cursor nothing would follow, or everything.
 */
export function readCursor(cursor: string | null, prefix: IdPrefix): string | null {
  if (cursor === null) return null;
  const id = Buffer.from(cursor, "base64url").toString("latin1");
  if (CURSOR_SHAPE.test(id) && id.startsWith(`${prefix}_`)) return id;
  throw new PawlError("validation_failed", "The cursor is not one that a list has given.", {
    faults: [{ pointer: "?cursor", detail: "is not a cursor of this list" }],
  });
}

/** A page of `limit` from rows that were read with one more. */
export function pageOf<Item extends { readonly id: string }>(
  rows: readonly Item[],
  limit: number,
): Page<Item> {
  const data = rows.slice(0, limit);
  const hasMore = rows.length > limit;
  const last = data.at(-1);
  return {
    data,
    hasMore,
    nextCursor: hasMore && last !== undefined ? Buffer.from(last.id).toString("base64url") : null,
  };
}
