import { ageWaitMs, backoffMs } from "../domain/backoff.js";
import { LONGEST_WAIT_MS } from "../domain/charge-decisions.js";
import type { NoticeSubject } from "../domain/provider.js";
import {
  type AttemptReference,
  type ChargeVerdict,
  judgeCharge,
  judgeRefund,
} from "../domain/provider-event.js";
import { findAttempt, findChargeOfObject } from "../store/attempt-references.js";
import { withDatabase } from "../store/db.js";
import {
  type ClaimedEvent,
  deferEvent,
  discardEvent,
  markEventApplied,
  parkEvent,
} from "../store/provider-events.js";
import type { Deps } from "./deps.js";
import { type Applied, askProvider, flag, nudge, unanswered } from "./provider-event-steps.js";
import { recordDispute } from "./record-dispute.js";
import { recordExternalRefund } from "./record-external-refund.js";
import { recordPayout } from "./record-payout.js";

/** The object carries the marker of another attempt or tenant than the payment it belongs to. */
const FOREIGN = "provider_object_foreign";
/** A second object with an attempt's marker, on which money has moved. */
const STRAY = "provider_object_stray";

/**
 * One try of a stored event that this worker has claimed. What it says is never believed: it tells which object to
 * look at, and effects and the end of its row are one transaction. Safe to run any number of times, at once too.
 */
export async function applyProviderEvent(deps: Deps, event: ClaimedEvent): Promise<void> {
  await deps.probe("before_event_applied");
  // What has ended this many workers before it could be written down is not given another.
  const applied: Applied =
    event.tries > deps.settings.providerEventMostTries
      ? { type: "again", reason: "tries_did_not_end" }
      : await tryOnce(deps, event);
  await deps.probe("before_event_ended");
  await conclude(deps, event, applied);
  await deps.probe("after_event_ended");
}

async function tryOnce(deps: Deps, event: ClaimedEvent): Promise<Applied> {
  try {
    return await applySubject(deps, event);
  } catch (error) {
    deps.log.warn({ err: error, event: event.eventId, type: event.type }, "provider event failed");
    return { type: "again", reason: "failed_here" };
  }
}

async function applySubject(deps: Deps, event: ClaimedEvent): Promise<Applied> {
  // Stored while another credential was configured; a process that has that one may still come.
  if (event.livemode !== deps.provider.livemode) return { type: "again", reason: "other_mode_here" };
  const notice = deps.rereadNotice(event.payload);
  if (notice === null) return { type: "again", reason: "unreadable" };
  const { subject } = notice;
  switch (subject.type) {
    case "charge":
      return applyCharge(deps, event, subject);
    case "refund":
      return applyRefund(deps, event, subject.objectId);
    case "dispute":
      return recordDispute(deps, event, subject.objectId);
    case "payout":
      return recordPayout(deps, event, subject.objectId);
    case "other":
      return { type: "nothing", outcome: "not_followed" };
  }
}

async function applyCharge(
  deps: Deps,
  event: ClaimedEvent,
  subject: Extract<NoticeSubject, { type: "charge" }>,
): Promise<Applied> {
  const owner = await ownerOf(deps, subject.objectId);
  const marked = owner === null ? await markedBy(deps, subject) : null;
  return actOn(deps, event, judgeCharge(subject, event.livemode, owner, marked));
}

async function applyRefund(deps: Deps, event: ClaimedEvent, refundId: string): Promise<Applied> {
  const answer = await askProvider(deps, "get_refund", () => deps.provider.getRefund(refundId));
  if (answer.type !== "found") return unanswered(answer);
  const { refund } = answer;
  if (refund.chargeId === null) return { type: "not_ours" };
  const owner = await ownerOf(deps, refund.chargeId);
  const marked = owner === null ? null : await markedBy(deps, refund);
  const verdict = judgeRefund(refund, event.livemode, owner, marked);
  if (verdict.type === "outside") return recordExternalRefund(deps, event, refund, verdict.charge);
  return actOn(deps, event, verdict);
}

async function actOn(deps: Deps, event: ClaimedEvent, verdict: ChargeVerdict): Promise<Applied> {
  switch (verdict.type) {
    case "nudge":
      return nudge(deps, event, verdict.attempt);
    case "foreign":
      return flag(deps, event, verdict.attempt, FOREIGN, null);
    case "stray":
      return applyStray(deps, event, verdict.attempt);
    case "unknown":
      return { type: "again", reason: "attempt_not_known" };
    case "other_mode":
      return { type: "nothing", outcome: "other_mode" };
    case "not_ours":
      return { type: "not_ours" };
  }
}

/** A second object of an attempt is harmless while no money moves on it (a create that landed late); else a person looks. */
async function applyStray(deps: Deps, event: ClaimedEvent, marked: AttemptReference): Promise<Applied> {
  const answer = await askProvider(deps, "get", () => deps.provider.getCharge(event.objectId));
  if (answer.type !== "found") return unanswered(answer);
  const { amountCaptured, amountCapturable } = answer.charge;
  if (amountCaptured === 0 && amountCapturable === 0) return { type: "nothing", outcome: STRAY };
  return flag(deps, event, marked, STRAY, event.objectId);
}

function ownerOf(deps: Deps, objectId: string): Promise<AttemptReference | null> {
  return withDatabase(() => findChargeOfObject(deps.db.sql, deps.provider.name, objectId));
}

async function markedBy(
  deps: Deps,
  marker: { readonly attemptId: string | null; readonly tenantId: string | null },
): Promise<AttemptReference | null> {
  const { attemptId, tenantId } = marker;
  if (attemptId === null || tenantId === null) return null;
  return withDatabase(() => findAttempt(deps.db.sql, tenantId, attemptId));
}

/** Ends the event's row where the effects' transaction did not, or says when it is tried again. */
async function conclude(deps: Deps, event: ClaimedEvent, applied: Applied): Promise<void> {
  const about = { event: event.eventId, type: event.type, tries: event.tries };
  switch (applied.type) {
    case "done":
      break;
    case "nothing":
      await withDatabase(() => markEventApplied(deps.db.sql, event, applied.outcome));
      break;
    case "not_ours":
      await withDatabase(() => discardEvent(deps.db.sql, event));
      break;
    case "again":
      return tryAgain(deps, event, applied);
    case "goes_on": {
      const rest = { ms: 0, outcome: applied.progress, uncounted: true };
      await withDatabase(() => deferEvent(deps.db.sql, event, rest));
      deps.due.eventStored();
      return;
    }
  }
  deps.meter.providerEvent("applied");
  deps.log.info(
    { ...about, outcome: applied.type === "not_ours" ? "not_ours" : applied.outcome },
    "provider event applied",
  );
}

async function tryAgain(
  deps: Deps,
  event: ClaimedEvent,
  { reason, retryAfterMs, uncounted = false }: Extract<Applied, { type: "again" }>,
): Promise<void> {
  const { settings } = deps;
  const about = { event: event.eventId, type: event.type, tries: event.tries, reason };
  if (event.tries >= settings.providerEventMostTries && !uncounted) {
    if (!(await withDatabase(() => parkEvent(deps.db.sql, event, reason)))) return;
    deps.meter.providerEvent("parked");
    deps.log.error(about, "provider event parked: `pawl events replay` tries it again");
    return;
  }
  const range = { firstMs: settings.retryFirstMs, mostMs: settings.retryMostMs };
  const ageMs = event.claimedAt.getTime() - event.receivedAt.getTime();
  const ownMs = uncounted ? ageWaitMs(range, ageMs, Math.random) : backoffMs(range, event.tries, Math.random);
  const ms = Math.min(Math.max(ownMs, retryAfterMs ?? 0), LONGEST_WAIT_MS);
  await withDatabase(() => deferEvent(deps.db.sql, event, { ms, outcome: reason, uncounted }));
  deps.meter.providerEvent("deferred");
  deps.log.info({ ...about, ms: Math.round(ms) }, "provider event deferred");
}
