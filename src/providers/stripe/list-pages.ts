import type { Evidence, LookupOutcome } from "../../domain/provider.js";
import { lookupRow } from "./classify-error.js";
import { isFields } from "./outcome.js";
import { text, type WireAnswer } from "./wire-answer.js";

/** The most that Stripe puts on a page (docs.stripe.com/api/pagination). */
export const PAGE_SIZE = 100;

/** 20,000 objects. More in one list cannot be read within one provider timeout; the question stays unanswered. */
export const MOST_PAGES = 200;

/** What is asked for beside the list's own filters. */
export interface PageParameters {
  readonly limit: number;
  readonly starting_after?: string;
}

/** Asks for one page, within the deadline that all pages of the list share. */
export type ListPage = (page: PageParameters) => Promise<WireAnswer>;

export type Unanswered = LookupOutcome & { type: "unanswered" };
export type Missing = LookupOutcome & { type: "missing" };

export type Listed<Item> =
  | { readonly type: "all"; readonly items: readonly Item[]; readonly evidence: Evidence }
  | Missing
  | Unanswered;

/**
 * Reads a list to its last page; less than that is no answer. v1 lists are immediately consistent
 * (docs.stripe.com/api-v2-overview). `read` skips an entry with "skip", and makes the whole unreadable with null.
 */
export async function listAll<Item>(
  listPage: ListPage,
  read: (entry: unknown) => Item | "skip" | null,
): Promise<Listed<Item>> {
  const items: Item[] = [];
  const seen = new Set<string>();
  let cursor: string | null = null;
  for (let pageNumber = 1; ; pageNumber++) {
    const answer = await listPage({ limit: PAGE_SIZE, ...startingAfter(cursor) });
    const refusal = refusalOf(answer);
    // Past the first page it is the cursor that is missing, not what the list is of.
    if (refusal !== null) return refusal.type === "missing" && cursor !== null ? refused(answer) : refusal;
    const page: Page<Item> | null = readPage(answer.body, (entry) => readOnce(entry, read, seen), cursor);
    if (page === null) return unanswered(answer, "unreadable");
    items.push(...page.items);
    if (page.next === null) return { type: "all", items, evidence: answer.evidence };
    if (pageNumber === MOST_PAGES) return unanswered(answer, "refused", "too_many_pages");
    cursor = page.next;
  }
}

/**
 * Null for an object that was seen before, too: what is new stands before the first page, so behind a cursor nothing comes
 * twice. It would be taken for a second object of its attempt.
 */
function readOnce<Item>(
  entry: unknown,
  read: (entry: unknown) => Item | "skip" | null,
  seen: Set<string>,
): Item | "skip" | null {
  const id = isFields(entry) ? text(entry["id"]) : null;
  if (id === null || seen.has(id)) return null;
  seen.add(id);
  return read(entry);
}

/** What an answer that brought nothing to read comes to; null where it is to be read. */
export function refusalOf(answer: WireAnswer): Missing | Unanswered | null {
  const verdict = lookupRow(answer).then;
  if (verdict.type === "missing") return { type: "missing", evidence: answer.evidence };
  return verdict.type === "unanswered" ? unanswered(answer, verdict.reason) : null;
}

/** A list without an object in its filters is never missing: such a 404 comes from a server that is none of Stripe's. */
export function refused({ evidence }: Pick<WireAnswer, "evidence">): Unanswered {
  return { type: "unanswered", reason: "refused", retryAfterMs: null, evidence };
}

export function unanswered(answer: WireAnswer, reason: Unanswered["reason"], code?: string): Unanswered {
  const evidence = code === undefined ? answer.evidence : { ...answer.evidence, code };
  return { type: "unanswered", reason, retryAfterMs: answer.retryAfterMs, evidence };
}

/** `next`: the cursor of the page after this one; null: this was the last. */
export interface Page<Item> {
  readonly items: readonly Item[];
  readonly next: string | null;
}

/** Where a page ended: the id of its last object, which page it was, and a mark, the end of one before it. */
interface Place {
  readonly id: string;
  readonly number: number;
  readonly mark: string;
}

/** As text without white space. That of a first page is its id alone. */
function cursorOf({ id, number, mark }: Place): string {
  return number === 1 ? id : [number, ...[mark, id].map(encodeURIComponent)].join(":");
}

function placeOf(cursor: string): Place {
  const [number = "", mark, id] = cursor.split(":");
  if (mark === undefined || id === undefined) return { id: cursor, number: 1, mark: cursor };
  return { id: decodeURIComponent(id), number: Number(number), mark: decodeURIComponent(mark) };
}

/** What Stripe is asked for, to have the page behind this cursor. */
export function startingAfter(cursor: string | null): { readonly starting_after?: string } {
  return cursor === null ? {} : { starting_after: placeOf(cursor).id };
}

/**
 * The cursor of the page behind one that ended with this object. Null where the list does not move on: it would be asked
 * for without end. A list that goes in a circle, over however many pages, comes to the mark again, since that is the end of
 * the last page whose number is a power of two (R. P. Brent, "An improved Monte Carlo factorization algorithm", 1980).
 */
export function cursorBehind(lastId: string | null, cursor: string | null): string | null {
  if (lastId === null) return null;
  if (cursor === null) return cursorOf({ id: lastId, number: 1, mark: lastId });
  const { id, mark, number } = placeOf(cursor);
  if (lastId === id || lastId === mark) return null;
  const next = number + 1;
  return cursorOf({ id: lastId, number: next, mark: Number.isInteger(Math.log2(next)) ? lastId : mark });
}

/** Null: this is no page, or something on it cannot be read. `cursor`: where it was to begin. */
export function readPage<Item>(
  body: unknown,
  read: (entry: unknown) => Item | "skip" | null,
  cursor: string | null,
): Page<Item> | null {
  const { data, has_more: more } = isFields(body) ? body : {};
  if (!Array.isArray(data) || typeof more !== "boolean") return null;
  const items: Item[] = [];
  for (const entry of data) {
    const item = read(entry);
    if (item === null) return null;
    if (item !== "skip") items.push(item);
  }
  if (!more) return { items, next: null };
  const lastEntry: unknown = data.at(-1);
  const next = cursorBehind(isFields(lastEntry) ? text(lastEntry["id"]) : null, cursor);
  return next === null ? null : { items, next };
}
