import { providerKey } from "../domain/attempt.js";
import { type Difference, distinct, type FindingState } from "../domain/finding.js";
import type { ListedCharge } from "../domain/provider.js";
import type { AttemptReference } from "../domain/provider-event.js";
import { acceptEnded, readFinding } from "../store/accepted-findings.js";
import { readMarked } from "../store/counterparts.js";
import { withDatabase } from "../store/db.js";
import type { FindingName, FoundDifference } from "../store/reconciliation.js";
import { hasJustRecovered } from "../store/recovery.js";
import { askProvider, flag, nudge } from "./provider-event-steps.js";
import { rebuildPayment, rebuildRefund } from "./rebuild-rows.js";
import type { HeldRun } from "./reconcile-run.js";
import { recordDispute } from "./record-dispute.js";
import { recordExternalRefund } from "./record-external-refund.js";

/** `repaired`: the difference is no more. `open`: it stands, or an attempt has been asked to mend it. */
interface Repair {
  readonly state: FindingState;
  /** What a person should know beside the difference itself. */
  readonly note?: string;
  /** Something was in the way just then. */
  readonly again?: true;
}

/** A difference, and what became of it. `again`: tried once more, it may be mended. */
export type Repaired = FoundDifference & Pick<Repair, "again">;

/** What is flagged is another object than the attempt's own. */
const STRAY = "provider_object_stray";

const ACCEPTED: Repair = { state: "accepted" };
const OPEN: Repair = { state: "open" };
const DONE: Repair = { state: "repaired" };
const BUSY: Repair = { state: "open", again: true };

/** Records what a step has found, and then does what is provable about each. */
export async function repairFindings(
  held: HeldRun,
  found: readonly (Difference & { readonly charge?: ListedCharge })[],
): Promise<FoundDifference[]> {
  if (found.length === 0) return [];
  const each = distinct(found);
  const differences = each.map(({ charge: _charge, ...difference }) => difference);
  await held.record(differences);
  const repaired: FoundDifference[] = [];
  for (const { charge, ...difference } of each) {
    repaired.push(await repairFinding(held, difference, charge ?? null));
  }
  return repaired;
}

/**
 * Does what is provable about a difference, by the ways that everything else takes, and yields it with the state that
 * it is in then. Each repair has the effect of one, however often it is made: a run that dies is made again.
 */
export async function repairFinding(
  held: HeldRun,
  { repair, ...difference }: Difference,
  charge: ListedCharge | null = null,
): Promise<Repaired> {
  await held.keep();
  if (await isAccepted(held, difference)) return { ...difference, state: "accepted" };
  await held.deps.probe("before_repair");
  const { state, note, again } = await attemptRepair(held, { repair, ...difference }, charge);
  await held.deps.probe("after_repair");
  const detail = note === undefined ? difference.detail : `${difference.detail}; ${note}`;
  const { kind, objectId, paymentId } = difference;
  const about = { kind, object: objectId, payment: paymentId, run: held.run.id, repair: repair.type, state };
  held.deps.log.warn(about, `reconciliation: ${detail}`);
  return { ...difference, detail, state, ...(again === undefined ? {} : { again }) };
}

/** As it has just been recorded: with other sides than a person has accepted it is open again. */
async function isAccepted({ deps }: HeldRun, name: FindingName): Promise<boolean> {
  const kept = await withDatabase(() => readFinding(deps.db.sql, deps.provider.name, name));
  return kept?.state === "accepted";
}

/** A person has ended the review that this difference opens: the attempt would only open it again. */
async function isEnded({ deps }: HeldRun, name: FindingName, attempt: AttemptReference): Promise<boolean> {
  if (name.kind !== "missing_there" && name.kind !== "refund_missing_there") return false;
  return withDatabase(() => acceptEnded(deps.db.sql, deps.provider.name, name, attempt));
}

async function attemptRepair(
  held: HeldRun,
  { repair, kind, objectId }: Difference,
  charge: ListedCharge | null,
): Promise<Repair> {
  const { deps } = held;
  const event = held.eventAbout(objectId);
  switch (repair.type) {
    case "none":
      return OPEN;
    case "nudge":
      if (await isEnded(held, { kind, objectId }, repair.attempt)) return ACCEPTED;
      // The attempt looks for itself; whether that has helped is seen afterwards.
      await nudge(deps, event, repair.attempt);
      return OPEN;
    case "flag":
      await flag(deps, event, repair.attempt, repair.reason, repair.reason === STRAY ? objectId : null);
      return OPEN;
    case "cancel_object":
      return cancelOrphan(held, repair, objectId);
    case "record_refund": {
      const applied = await recordExternalRefund(deps, event, repair.refund, repair.charge);
      if (applied.type === "again") return BUSY;
      return applied.type === "done" && applied.flagged !== true ? DONE : OPEN;
    }
    case "record_dispute": {
      const applied = await recordDispute(deps, event, repair.disputeId);
      if (applied.type === "again") return { state: "open", note: applied.reason };
      const isRecorded = applied.type === "done" && applied.flagged !== true;
      return isRecorded || applied.type === "nothing" ? DONE : OPEN;
    }
    case "rebuild_payment": {
      if (charge === null || !(await mayRebuild(held))) return OPEN;
      return (await rebuildPayment(held, charge)) ? DONE : OPEN;
    }
    case "rebuild_refund":
      if (!(await mayRebuild(held))) return OPEN;
      return (await rebuildRefund(held, repair.charge, repair.refund)) ? DONE : BUSY;
  }
}

/** By the assumption of docs/guarantees.md: a request is executed within a day after it was sent, or never. */
const LANDS_WITHIN_MS = 86_400_000;

/**
 * Whether what is not here was lost: in a recovery, and for a day behind it, when what was under way may still land.
 * Otherwise a row that is missing means something else, such as a copy of the data that sends.
 */
async function mayRebuild({ deps, run }: HeldRun): Promise<boolean> {
  if (run.trigger === "recover") return true;
  return withDatabase(() => hasJustRecovered(deps.db.sql, run, LANDS_WITHIN_MS));
}

/**
 * Cancels an object that nobody confirms, under a key derived from the attempt and the object. Only what the provider,
 * asked again, still shows unconfirmed, and no attempt can adopt any more; and it is done only once it is read back.
 */
async function cancelOrphan(
  { deps }: HeldRun,
  marks: { readonly attemptId: string; readonly tenantId: string },
  objectId: string,
): Promise<Repair> {
  const before = await askProvider(deps, "get", () => deps.provider.getCharge(objectId));
  if (before.type !== "found" || before.charge.status !== "created") return OPEN;
  const marked = await withDatabase(() => readMarked(deps.db.sql, [{ objectId, ...marks }]));
  const attempt = marked.get(objectId);
  const mayBeAdopted =
    attempt !== undefined &&
    (attempt.inWork || (attempt.objectId === null ? !attempt.ended : attempt.objectId === objectId));
  if (mayBeAdopted) return { state: "open", note: "its attempt is at work again" };
  const base = providerKey({ id: marks.attemptId, fenceRound: 1 }, "create");
  const context = { idempotencyKey: `${base}:orphan:${objectId}`, resend: false };
  const sent = await askProvider(deps, "cancel_orphan", () => deps.provider.cancelCharge(objectId, context));
  const after = await askProvider(deps, "get", () => deps.provider.getCharge(objectId));
  if (after.type === "found" && after.charge.status === "canceled") return DONE;
  return { state: "open", note: `the cancel came to ${sent.type}` };
}
