import type { Difference } from "../domain/finding.js";
import { firstIdAt, type IdPrefix } from "../lib/ids.js";
import type { BandRows, IdBand } from "../store/counterparts.js";
import { withDatabase } from "../store/db.js";
import type { ProviderAnswer } from "./provider-event-steps.js";
import type { HeldRun, Position } from "./reconcile-run.js";

/** Rows of ours that are read in one step. */
const MOST_READ = 500;
/** Questions of one step; a whole step of them fits a lease where the provider answers as it should. */
const MOST_ASKED = 40;
/** The provider counts in whole seconds: rows of the last object's second may have theirs on the next page. */
const SECOND_MS = 1_000;
const NO_ROWS = { rows: [], isAll: true } as const;

/** Rows of ours that may name an object of the provider's. Their ids tell when they were made. */
export interface OwnRows<Row> {
  readonly prefix: IdPrefix;
  /** What `ask` is counted as. */
  readonly question: "get" | "get_refund";
  read(band: IdBand): Promise<BandRows<Row>>;
  rowId(row: Row): string;
  /** Null: there is none to ask about. */
  objectId(row: Row): string | null;
  ask(objectId: string): Promise<ProviderAnswer>;
  missing(row: Row, objectId: string): Difference;
}

interface Page {
  readonly oldest: Date | null;
  readonly next: string | null;
}

/** `left`: our rows before this id are still to be looked at, beside this same page; null: none of its time is. */
export interface Band {
  readonly missing: readonly Difference[];
  readonly left: string | null;
  /** Where the next page's rows end. */
  readonly from: string;
}

/**
 * Looks for rows of a page's time whose object the provider did not show. The list only spares questions: what it did
 * not show (made a moment earlier or later, or by a clock that differs) is asked about by its id, and a 404 alone counts.
 */
export async function lookForMissing<Row>(
  held: HeldRun,
  position: Position,
  page: Page,
  own: OwnRows<Row>,
): Promise<Band> {
  const { windowFrom, windowTo } = held.run;
  const isLast = page.next === null || page.oldest === null;
  const start = isLast ? windowFrom : new Date((page.oldest?.getTime() ?? 0) + SECOND_MS);
  const from = firstIdAt(own.prefix, start);
  const before = position.before ?? firstIdAt(own.prefix, windowTo);
  const { rows, isAll } =
    from < before ? await withDatabase(() => own.read({ from, before, limit: MOST_READ })) : NO_ROWS;
  const missing: Difference[] = [];
  let asked = 0;
  let reached = before;
  for (const row of rows) {
    const objectId = own.objectId(row);
    if (objectId !== null && !held.recent.has(objectId)) {
      if (asked === MOST_ASKED) return { missing, left: reached, from };
      asked += 1;
      const answer = await held.askAbout(objectId, own.question, () => own.ask(objectId));
      if (answer?.type === "missing") missing.push(own.missing(row, objectId));
    }
    reached = own.rowId(row);
  }
  return { missing, left: isAll ? null : reached, from: from < before ? from : before };
}

/** Where the phase goes on behind a page and its time's rows; null: that was all. */
export function behind(position: Position, page: Page, band: Band): Position | null {
  const { skipped, leftOut } = position;
  const base = { failures: 0, since: null, notBefore: null, skipped, leftOut };
  if (band.left !== null) {
    return { ...base, after: position.after, isCompared: true, before: band.left };
  }
  if (page.next === null) return null;
  return { ...base, after: page.next, isCompared: false, before: band.from };
}
