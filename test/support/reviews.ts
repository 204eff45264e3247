import type { ReviewResolution } from "../../src/domain/instruction.js";
import type { Review } from "../../src/domain/review-document.js";
import type { KeyedAnswer } from "../../src/operations/keyed-request.js";
import { getReview } from "../../src/operations/read-reviews.js";
import { resolveReview } from "../../src/operations/resolve-review.js";
import { documentOf, type Harness, newKey, pay, until, untilStatus } from "./harness.js";

export interface ResolveOptions {
  readonly key?: string;
  readonly reason?: string;
  readonly object?: string;
  readonly version?: number;
  readonly deps?: Harness["deps"];
}

/** One `POST /v1/reviews/{id}/resolve`, past the HTTP layer. */
export function resolve(
  harness: Harness,
  reviewId: string,
  resolution: ReviewResolution,
  options: ResolveOptions = {},
): Promise<KeyedAnswer> {
  const context = { requestId: `req_${newKey()}`, traceparent: null, signal: new AbortController().signal };
  return resolveReview(
    options.deps ?? harness.deps,
    { caller: harness.caller, context, key: options.key ?? newKey() },
    reviewId,
    {
      resolution,
      reason: options.reason ?? "looked at it",
      providerObjectId: options.object ?? null,
      version: options.version ?? null,
    },
  );
}

/** What the review takes now. */
export async function allowedIn(harness: Harness, reviewId: string): Promise<string[]> {
  return (await getReview(harness.deps, harness.caller, reviewId)).allowed.map((one) => one.resolution);
}

/** The newest review, as its row is. */
export async function lastReview({ deps }: Harness) {
  const [row] = await deps.db.sql<ReviewRow[]>`select * from reviews order by id desc limit 1`;
  if (row === undefined) throw new Error("there is no review");
  return row;
}

export interface ReviewRow {
  readonly id: string;
  readonly payment_id: string;
  readonly attempt_id: string;
  readonly reason: string;
  readonly closed_at: string | null;
  readonly closed_by: Review["closedBy"];
  readonly resolution: ReviewResolution | null;
  readonly resolution_reason: string | null;
  readonly resolved_by: string | null;
}

/** Waits until a review is open, for this reason. */
export function untilReview(harness: Harness, reason: string): Promise<ReviewRow> {
  return until(
    `a review for ${reason}`,
    async () =>
      (await harness.deps.db.sql<ReviewRow[]>`select * from reviews where closed_at is null`)[0] as ReviewRow,
    (row) => row?.reason === reason,
  );
}

export function untilClosed(harness: Harness, reviewId: string): Promise<ReviewRow> {
  return until(
    `an end of ${reviewId}`,
    async () =>
      (await harness.deps.db.sql<ReviewRow[]>`select * from reviews where id = ${reviewId}`)[0] as ReviewRow,
    (row) => row.closed_at !== null,
  );
}

/** Waits until the person's decision has come back undone. */
export function untilReturned(harness: Harness, reviewId: string): Promise<ReviewRow> {
  return until(
    `${reviewId} undecided again`,
    async () =>
      (await harness.deps.db.sql<ReviewRow[]>`select * from reviews where id = ${reviewId}`)[0] as ReviewRow,
    (row) => row.resolution === null,
  );
}

/** The reasons of the payment's timeline, oldest first. */
export async function reasonsOf(harness: Harness, paymentId: string): Promise<string[]> {
  const rows = await harness.deps.db.sql<{ reason: string }[]>`
    select reason from timeline where payment_id = ${paymentId} order by at, id`;
  return rows.map((row) => row.reason);
}

/** What no attempt must be left with once its review has ended. */
export async function instructionsLeft({ deps }: Harness): Promise<number> {
  return (await deps.db.sql`select 1 from attempts where instruction is not null`).length;
}

const CONFIRM = { call: "payment_intents.confirm" };
const RETRIEVE = { call: "payment_intents.retrieve" };

export interface Silent {
  readonly id: string;
  readonly key: string;
  readonly review: ReviewRow;
}

/** For the stage below: an unknown needs a person soon. */
export const IMPATIENT: Readonly<Record<string, string>> = {
  PROVIDER_TIMEOUT_MS: "400",
  ATTEMPT_LEASE_MS: "1200",
  UNKNOWN_REVIEW_AFTER_MS: "200",
};

/** A payment whose confirm had no effect and no answer, with a provider that answers no question until faults are cleared. */
export async function silentProvider(harness: Harness): Promise<Silent> {
  const { control } = harness.sandbox;
  await control.addFault({ match: CONFIRM, fault: { type: "reset", effect: "none" } });
  await control.addFault({ match: RETRIEVE, times: null, fault: { type: "error", status: 503 } });
  const key = newKey();
  const { id } = documentOf(await pay(harness, { key, waitMs: 0 }));
  await untilStatus(harness, id, "needs_review");
  return { id, key, review: await untilReview(harness, "outcome_unknown") };
}
