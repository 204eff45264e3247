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
  let cursor: string | null = null;
  for (let pageNumber = 1; ; pageNumber++) {
    const answer = await listPage({
      limit: PAGE_SIZE,
      ...(cursor === null ? {} : { starting_after: cursor }),
    });
    const refusal = refusalOf(answer);
    // Past the first page it is the cursor that is missing, not what the list is of.
    if (refusal !== null) return refusal.type === "missing" && cursor !== null ? refused(answer) : refusal;
    const page: Page<Item> | null = readPage(answer.body, read, cursor);
    if (page === null) return unanswered(answer, "unreadable");
    items.push(...page.items);
    if (page.next === null) return { type: "all", items, evidence: answer.evidence };
    if (pageNumber === MOST_PAGES) return unanswered(answer, "refused", "too_many_pages");
    cursor = page.next;
  }
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

/** Whether a page that is not the last one tells where the next begins: otherwise it would be asked for without end. */
export function movesOn(next: string | null, cursor: string | null): next is string {
  return next !== null && next !== cursor;
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
  const next = isFields(lastEntry) ? text(lastEntry["id"]) : null;
  return movesOn(next, cursor) ? { items, next } : null;
}
