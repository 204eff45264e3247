import type Stripe from "stripe";
import type { ChargeStatus, LookupOutcome, ProviderCharge } from "../../domain/provider.js";
import type { Logger } from "../../lib/log.js";
import { type ListPage, listAll, refused } from "./list-pages.js";
import { bearsMark, toProviderCharge } from "./outcome.js";

/** Of two objects for one attempt, the one in which money moved, or may yet move, is the charge. */
const PROGRESS: readonly ChargeStatus[] = [
  "canceled",
  "created",
  "declined",
  "unrecognized",
  "requires_action",
  "pending",
  "authorized",
  "succeeded",
];

export interface FindReference {
  readonly attemptId: string;
  readonly createdFrom: Date;
  readonly createdTo: Date;
}

/** Whole seconds, and no less than the window. */
export function createdWindow({ createdFrom, createdTo }: FindReference): Stripe.RangeQueryParam {
  return { gte: Math.floor(createdFrom.getTime() / 1000), lte: Math.ceil(createdTo.getTime() / 1000) };
}

/**
 * Looks for an attempt's object in the list of what was made in a window: search is not consistent
 * (docs.stripe.com/search). Reads to the last page even after a match, since a key that was pruned at Stripe may have
 * made a second object.
 */
export async function findCharge(
  listPage: ListPage,
  { attemptId }: FindReference,
  log: Logger,
): Promise<LookupOutcome> {
  const listed = await listAll(listPage, (entry) =>
    bearsMark(entry, attemptId) ? toProviderCharge(entry) : "skip",
  );
  if (listed.type === "missing") return refused(listed);
  if (listed.type === "unanswered") return listed;
  const { evidence } = listed;
  const charge = mostAdvanced(listed.items, PROGRESS, attemptId, log);
  return charge === null ? { type: "absent", evidence } : { type: "found", charge, evidence };
}

/** Null where there is none. More than one is logged as an error: they are one attempt's. */
export function mostAdvanced<Item extends Pick<ProviderCharge, "id"> & { readonly status: string }>(
  items: readonly Item[],
  progress: readonly Item["status"][],
  attemptId: string,
  log: Logger,
): Item | null {
  const ordered = items.toSorted(
    (one, other) => progress.indexOf(other.status) - progress.indexOf(one.status),
  );
  if (ordered.length > 1) {
    const objects = ordered.map(({ id, status }) => ({ id, status }));
    log.error({ attempt_id: attemptId, objects }, "more than one object at Stripe for one attempt");
  }
  return ordered[0] ?? null;
}
