import type { EndState, ReviewRow } from "./end-state.js";
import type { SentDecision } from "./people.js";
import type { World } from "./world.js";

/** What people decided is kept and was carried out or given back, and what is open nobody can decide. */
export function reviewFaults(rows: EndState, world: World): string[] {
  return [
    ...rows.allReviews.flatMap((review) => faultsOf(review, world)),
    ...world.people.decisions.flatMap((decision) => auditFaults(decision, rows, world)),
    ...strangeRequests(rows, world),
    ...doubleDecisions(rows, world),
    ...unseenTampering(rows, world),
  ];
}

function faultsOf(review: ReviewRow, world: World): string[] {
  const { id, reason, closed_at: closedAt, closed_by: closedBy } = review;
  const name = `the review ${id} (${reason})`;
  const isDecided = review.resolution !== null;
  const accepted = world.people.decisions.filter((one) => one.review.id === id && one.told !== "refused");
  const kept = accepted.some(
    (one) =>
      one.resolution === review.resolution &&
      one.reason === review.resolution_reason &&
      one.by === review.resolved_by,
  );
  return [
    ...(isDecided && (!kept || review.resolved_at === null)
      ? [
          `${name} keeps a decision that nobody made: ${review.resolution ?? ""} by ${review.resolved_by ?? ""}`,
        ]
      : []),
    ...(closedBy === "person" && !isDecided
      ? [`${name} was closed by a person, and by none that it names`]
      : []),
    ...((closedAt === null) === (closedBy === null) ? [] : [`${name} is closed by ${closedBy ?? "nobody"}`]),
    ...(closedAt === null ? openFaults(review, name, world) : []),
  ];
}

/** What is still open is beyond everybody: it was tried, and the provider's side says why it cannot be. */
function openFaults(review: ReviewRow, name: string, world: World): string[] {
  if (review.resolution !== null) return [`${name} was decided, and nobody carries it out`];
  if (!world.people.hasGivenUp(review.id)) return [`${name} is open, and nobody has tried to decide it`];
  return isUndecidable(review, world) ? [] : [`${name} is open, though it can be decided`];
}

/**
 * Its record was lost, and another request sent under its key since: what the provider has is not what was asked for.
 */
function isUndecidable({ attempt_id: attemptId }: ReviewRow, world: World): boolean {
  const isLost = world.restore?.loss?.attempts.has(attemptId) ?? false;
  return isLost && world.money.mayDiffer(attemptId);
}

/** An accepted decision stands in the payment's timeline, once, with who and why. */
function auditFaults(decision: SentDecision, rows: EndState, world: World): string[] {
  const { review, resolution, reason, by, told } = decision;
  const { keptAtMs = 0, restoredAtMs = -1 } = world.restore?.loss ?? {};
  const mayBeLost = decision.atMs <= restoredAtMs && decision.lastAtMs >= keptAtMs;
  const entries = rows.requests.filter(
    (row) =>
      row.payment_id === review.paymentId &&
      row.reason === `${resolution} requested: ${reason}` &&
      row.outcome === `by ${by}`,
  );
  const isRight =
    told === "accepted"
      ? entries.length === 1 || (entries.length === 0 && mayBeLost)
      : told === "refused"
        ? entries.length === 0
        : entries.length <= 1;
  return isRight
    ? []
    : [`${reason} (${resolution} of ${review.id}) was ${told} and is told ${String(entries.length)} times`];
}

function strangeRequests(rows: EndState, world: World): string[] {
  const reasons = new Set(
    world.people.decisions.map(({ resolution, reason }) => `${resolution} requested: ${reason}`),
  );
  const strange = rows.requests.filter(
    ({ outcome, reason }) => outcome?.startsWith("by ") === true && !reasons.has(reason),
  );
  return strange.map(({ payment_id: id, reason }) => `${id} was told of what nobody asked for: ${reason}`);
}

/** A review takes one decision, and another one only once that is given back. */
function doubleDecisions(rows: EndState, world: World): string[] {
  const attemptIds = new Set(rows.allReviews.map((review) => review.attempt_id));
  return [...attemptIds].flatMap((attemptId) => {
    const its = rows.allReviews.filter((review) => review.attempt_id === attemptId);
    const ids = new Set(its.map(({ id }) => id));
    const accepted = world.people.decisions.filter(
      (one) => one.told === "accepted" && ids.has(one.review.id),
    );
    const returned = rows.returned.find((row) => row.attempt_id === attemptId)?.times ?? 0;
    return accepted.length <= its.length + returned
      ? []
      : [
          `${attemptId} has ${String(its.length)} reviews, ${String(accepted.length)} decisions were accepted, and ${String(returned)} given back`,
        ];
  });
}

/** Another amount than asked for was taken: a person was asked. */
function unseenTampering(rows: EndState, world: World): string[] {
  return rows.payments.flatMap(({ id, attempt_id: attemptId, amount, status }) => {
    const attempt = rows.attempts.find((row) => row.id === attemptId);
    const intent = world.model.intents.get(attempt?.provider_payment_id ?? "");
    const isOther = intent !== undefined && intent.amount !== Number(amount) && intent.captured > 0;
    const wasAsked = rows.allReviews.some(
      (review) =>
        review.payment_id === id &&
        (["provider_amount_mismatch", "paid_after_end"].includes(review.reason) ||
          review.closed_by === "person"),
    );
    return isOther && !wasAsked
      ? [`${id} is ${status}, its object ${intent.id} is for another amount, and nobody was asked`]
      : [];
  });
}
