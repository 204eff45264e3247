import type Stripe from "stripe";
import type { ChargeStatus, LookupOutcome, ProviderCharge } from "../../domain/provider.js";
import type { Logger } from "../../lib/log.js";
import { lookupRow } from "./classify-error.js";
import { ATTEMPT_METADATA_KEY, isFields, toProviderCharge } from "./outcome.js";
import { text, type WireAnswer } from "./wire-answer.js";

const PAGE_SIZE = 100;

/** 20,000 objects. More in one window cannot be read within one provider timeout; the question stays unanswered. */
export const MOST_PAGES = 200;

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

type ListPage = (parameters: Stripe.PaymentIntentListParams) => Promise<WireAnswer>;

/**
 * Looks for an attempt's object in the list of what was made in a window: v1 lists are immediately consistent, search
 * is not (docs.stripe.com/api-v2-overview, docs.stripe.com/search). Reads to the last page even after a match, since a
 * key that was pruned at Stripe may have made a second object.
 */
export async function findCharge(
  listPage: ListPage,
  reference: FindReference,
  log: Logger,
): Promise<LookupOutcome> {
  const created = {
    gte: Math.floor(reference.createdFrom.getTime() / 1000),
    lte: Math.ceil(reference.createdTo.getTime() / 1000),
  };
  const matches: ProviderCharge[] = [];
  let cursor: { starting_after?: string } = {};
  for (let pageNumber = 1; ; pageNumber++) {
    const answer = await listPage({ created, limit: PAGE_SIZE, ...cursor });
    const page = readPage(answer, reference.attemptId);
    if (page.type !== "page") return page;
    matches.push(...page.matches);
    if (page.last) return outcomeOf(matches, answer, reference.attemptId, log);
    if (pageNumber === MOST_PAGES) return unanswered(answer, "refused", "too_many_pages");
    cursor = { starting_after: page.cursor };
  }
}

type Page = { readonly type: "page"; readonly matches: readonly ProviderCharge[] } & (
  | { readonly last: true }
  | { readonly last: false; readonly cursor: string }
);

function readPage(answer: WireAnswer, attemptId: string): Page | (LookupOutcome & { type: "unanswered" }) {
  const verdict = lookupRow(answer).then;
  if (verdict.type === "unanswered") return unanswered(answer, verdict.reason);
  // A list is never missing: a 404 for it comes from a server that is none of Stripe's.
  if (verdict.type === "missing") return unanswered(answer, "refused");

  const body = isFields(answer.body) ? answer.body : {};
  const { data, has_more: more } = body;
  if (!Array.isArray(data) || typeof more !== "boolean") return unanswered(answer, "unreadable");
  const ours = data.filter((entry) => isOf(entry, attemptId)).map(toProviderCharge);
  const matches = ours.filter((charge) => charge !== null);
  if (matches.length !== ours.length) return unanswered(answer, "unreadable");
  if (!more) return { type: "page", matches, last: true };
  const lastEntry: unknown = data.at(-1);
  const cursor = isFields(lastEntry) ? text(lastEntry["id"]) : null;
  return cursor === null ? unanswered(answer, "unreadable") : { type: "page", matches, last: false, cursor };
}

function isOf(entry: unknown, attemptId: string): boolean {
  const metadata = isFields(entry) ? entry["metadata"] : null;
  return isFields(metadata) && metadata[ATTEMPT_METADATA_KEY] === attemptId;
}

function outcomeOf(
  matches: readonly ProviderCharge[],
  answer: WireAnswer,
  attemptId: string,
  log: Logger,
): LookupOutcome {
  const { evidence } = answer;
  const byProgress = matches.toSorted(
    (one, other) => PROGRESS.indexOf(other.status) - PROGRESS.indexOf(one.status),
  );
  const [charge] = byProgress;
  if (charge === undefined) return { type: "absent", evidence };
  if (matches.length > 1) {
    const charges = byProgress.map(({ id, status }) => ({ id, status }));
    log.error({ attempt_id: attemptId, charges }, "more than one object at Stripe for one attempt");
  }
  return { type: "found", charge, evidence };
}

function unanswered(
  answer: WireAnswer,
  reason: (LookupOutcome & { type: "unanswered" })["reason"],
  code?: string,
): LookupOutcome & { type: "unanswered" } {
  const evidence = code === undefined ? answer.evidence : { ...answer.evidence, code };
  return { type: "unanswered", reason, retryAfterMs: answer.retryAfterMs, evidence };
}
