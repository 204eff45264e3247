import { closedAs, type Difference, type Repair, type Side } from "../domain/finding.js";
import { feeFactOf } from "../domain/ledger.js";
import type { ListedCharge, PageOutcome, PageRequest } from "../domain/provider.js";
import { compareCharge, missingThere } from "../domain/reconcile.js";
import {
  compareDispute,
  compareFee,
  compareRefund,
  refundMissingThere,
} from "../domain/reconcile-after-charge.js";
import { type ReadCharge, readFacts, readOwners, readRefundsOf } from "../store/counterparts.js";
import { withDatabase } from "../store/db.js";
import { type Finding, type FoundDifference, listOpenFindings } from "../store/reconciliation.js";
import { readCounterparts } from "./compare-charges.js";
import { readRefundCounterparts } from "./compare-refunds.js";
import { type HeldRun, type PhaseStep, type Position, Unanswered } from "./reconcile-run.js";
import { waitForAttempts } from "./recover.js";
import { type Repaired, repairFinding } from "./repair-finding.js";

const MOST_READ = 200;
/** Looked at in one step, each with a question or two. */
const MOST_LOOKED_AT = 20;
/** Of the objects that were made in one second: far more than any account makes. */
const MOST_PAGES = 100;
/** What has been asked to mend a difference is given so long before the run says that it stands. */
const PATIENCE_MS = 20_000;
/** Longer in a recovery, which takes in all that it can: meanwhile nothing is sent. */
const RECOVERY_PATIENCE_MS = 60_000;

const WRITES_ROWS: ReadonlySet<Repair["type"]> = new Set<Repair["type"]>([
  "record_refund",
  "record_dispute",
  "rebuild_payment",
  "rebuild_refund",
]);

type ChargePage = Extract<PageOutcome<ListedCharge>, { type: "page" }>;

type Look =
  /** An attempt is at work on it, or about to be. */
  | { readonly type: "pending" }
  | { readonly type: "unanswered" }
  | { readonly type: "looked"; readonly differences: readonly Difference[] };

const NOTHING: Look = { type: "looked", differences: [] };

/**
 * Looks again at every open difference, of this run or an earlier one: at the object itself, and at our rows as they are
 * now. What is the same by now is closed; what an attempt is at work on is waited for a while.
 */
export async function verifyFindings(held: HeldRun, position: Position): Promise<PhaseStep> {
  const { deps, run } = held;
  // A millisecond on, since that is what a time keeps here and the database counts finer.
  const seenBefore = new Date(position.since ?? run.claimedAt.getTime() + 1);
  const open = await withDatabase(() =>
    listOpenFindings(deps.db.sql, run.provider, {
      unseen: { before: seenBefore, account: run.account },
      limit: MOST_READ,
    }),
  );
  const isRecovery = run.trigger === "recover";
  const patienceMs = isRecovery ? RECOVERY_PATIENCE_MS : PATIENCE_MS;
  const isPatient = run.claimedAt.getTime() - seenBefore.getTime() < patienceMs;
  const findings: FoundDifference[] = [];
  let looks = 0;
  for (const finding of open) {
    if (looks === MOST_LOOKED_AT) break;
    const look = await lookAgain(held, finding, isPatient);
    const comesAgain = isRecovery && isPatient;
    if (look.type === "pending" || (look.type === "unanswered" && comesAgain)) continue;
    const concluded = await conclude(held, finding, look);
    // The row that it writes was busy just then.
    if (comesAgain && concluded.some(({ again }) => again === true)) continue;
    looks += 1;
    findings.push(...concluded);
  }
  const going = { ...position, failures: 0, since: seenBefore.toISOString() };
  // What has just been made again is followed by an attempt that has had no answer yet.
  if (open.length === 0 && isRecovery) return waitForAttempts(held, going);
  if (open.length === 0) return { objects: 0, findings, position: null };
  return { objects: 0, findings, position: going, ...(looks === 0 ? ({ waits: true } as const) : {}) };
}

async function conclude(held: HeldRun, finding: Finding, look: Look): Promise<Repaired[]> {
  const {
    firstRun: _first,
    lastRun,
    firstSeenAt: _since,
    lastSeenAt: _seen,
    closedAt: _closed,
    ...shown
  } = finding;
  if (look.type !== "looked") return [shown];
  const found: Repaired[] = [];
  for (const difference of look.differences) {
    // The run's own pages have tried the repair already. What writes a row of ours may have found it held.
    const isTried =
      lastRun === held.run.id && difference.kind === finding.kind && !WRITES_ROWS.has(difference.repair.type);
    if (isTried) found.push(asTried(difference, finding));
    else found.push(await repairFinding(held, difference, await listedCharge(held, difference)));
  }
  const stands = look.differences.some(
    ({ kind, objectId }) => kind === finding.kind && objectId === finding.objectId,
  );
  return stands ? found : [...found, { ...shown, state: closedAs(finding.kind) }];
}

/**
 * Where a recovery makes a row again: the object as its list shows it, which tells more than the object alone. Null: there
 * is nothing to make, or nobody knows when the object was made.
 */
async function listedCharge(held: HeldRun, difference: Difference): Promise<ListedCharge | null> {
  const madeAt = madeAtOf(difference.theirs);
  if (difference.repair.type !== "rebuild_payment" || held.run.trigger !== "recover" || madeAt === null)
    return null;
  const { provider } = held.deps;
  let cursor: string | null = null;
  for (let pages = 0; pages < MOST_PAGES; pages += 1) {
    const request: PageRequest = { createdFrom: madeAt, createdTo: madeAt, cursor };
    const page: ChargePage = await held.ask("list_charges", () => provider.listCharges(request));
    const listed = page.items.find(({ id }) => id === difference.objectId);
    if (listed !== undefined || page.next === null) return listed ?? null;
    cursor = page.next;
  }
  return null;
}

/** What the try came to is told in the finding's own sentence, behind the difference's. */
function asTried({ repair: _repair, ...difference }: Difference, finding: Finding): FoundDifference {
  const detail = finding.detail.startsWith(difference.detail) ? finding.detail : difference.detail;
  return { ...difference, detail, state: "open" };
}

async function lookAgain(held: HeldRun, finding: Finding, isPatient: boolean): Promise<Look> {
  try {
    switch (finding.kind) {
      case "missing_here":
      case "tenant_missing_here":
      case "missing_there":
      case "amount_differs":
      case "currency_differs":
      case "status_differs":
      case "status_unrecognized":
      case "orphaned_object":
      case "foreign_object":
      case "unreadable_object":
      case "second_object":
        return await lookAtCharge(held, finding, isPatient);
      case "refund_missing_here":
      case "refund_missing_there":
      case "second_refund":
      case "refund_outside":
      case "refund_differs":
        return await lookAtRefund(held, finding, isPatient);
      case "dispute_differs":
        return await lookAtDispute(held, finding);
      case "fee_differs":
        return await lookAtFee(held, finding, isPatient);
      case "event_undelivered":
        return NOTHING;
    }
  } catch (error) {
    // The next one would have no answer either: the step is made again once the provider may be asked.
    if (error instanceof Unanswered && error.reason !== "rate_limited") return { type: "unanswered" };
    throw error;
  }
}

/** Null: nothing is in its way. While there is patience, an attempt that is due is given the time to look itself. */
function inTheWay(
  ours: { readonly inWork: boolean; readonly isDue: boolean } | null,
  isPatient: boolean,
): Look | null {
  if (ours === null) return null;
  if (isPatient && (ours.inWork || ours.isDue)) return { type: "pending" };
  return ours.inWork ? { type: "unanswered" } : null;
}

async function lookAtCharge(held: HeldRun, finding: Finding, isPatient: boolean): Promise<Look> {
  const { provider } = held.deps;
  const wanted = {
    objectId: finding.objectId,
    attemptId: theirs(finding, "payment_attempt_id"),
    tenantId: finding.tenantId,
  };
  const { owner, marked, ...rest } = (await readCounterparts(held, [wanted]))(wanted);
  const obstacle = inTheWay(owner ?? marked, isPatient);
  if (obstacle !== null) return obstacle;
  const answer = await held.ask("get", () => provider.getCharge(finding.objectId));
  if (answer.type === "found") {
    const madeAt = madeAtOf(finding.theirs);
    const charge = madeAt === null ? answer.charge : { ...answer.charge, createdAt: madeAt };
    const moment = { ...held.moment, settledBefore: null };
    return { type: "looked", differences: compareCharge(charge, { owner, marked, ...rest }, moment) };
  }
  if (owner === null) return NOTHING;
  return { type: "looked", differences: [missingThere({ ...owner, objectId: finding.objectId })] };
}

async function lookAtRefund(held: HeldRun, finding: Finding, isPatient: boolean): Promise<Look> {
  const { provider } = held.deps;
  const moment = { ...held.moment, settledBefore: null };
  const answer = await held.ask("get_refund", () => provider.getRefund(finding.objectId));
  if (answer.type === "found") {
    const counterpart = (await readRefundCounterparts(held, [answer.refund]))(answer.refund);
    // Of a charge that has just been made again it is not known yet what was captured.
    const obstacle = inTheWay(counterpart.refund ?? counterpart.charge, isPatient);
    return obstacle ?? { type: "looked", differences: compareRefund(answer.refund, counterpart, moment) };
  }
  const chargeId = theirs(finding, "provider_payment_id") ?? ours(finding, "provider_payment_id");
  if (chargeId === null) return NOTHING;
  const named = [{ refundId: finding.objectId, chargeId }];
  const known = await withDatabase(() => readRefundsOf(held.deps.db.sql, provider.name, named));
  const refund = known.get(finding.objectId) ?? null;
  const obstacle = inTheWay(refund, isPatient);
  if (obstacle !== null || refund === null) return obstacle ?? NOTHING;
  return {
    type: "looked",
    differences: [refundMissingThere({ ...refund, providerRefundId: finding.objectId })],
  };
}

async function lookAtDispute(held: HeldRun, finding: Finding): Promise<Look> {
  const { provider } = held.deps;
  const answer = await held.ask("get_dispute", () => provider.getDispute(finding.objectId));
  if (answer.type !== "found") return NOTHING;
  const { dispute } = answer;
  const charge = await ownerOf(held, dispute.chargeId);
  const kept = charge?.disputes.find(({ id }) => id === dispute.id) ?? null;
  return { type: "looked", differences: compareDispute(dispute, charge, kept, null) };
}

/** Of a fee it is our books that can have changed; the provider's movement stands. */
async function lookAtFee(held: HeldRun, finding: Finding, isPatient: boolean): Promise<Look> {
  const charge = await ownerOf(held, theirs(finding, "provider_payment_id"));
  const obstacle = inTheWay(charge, isPatient);
  if (obstacle !== null || charge === null) return obstacle ?? NOTHING;
  const { tenantId, paymentId } = charge;
  const fact = feeFactOf(finding.objectId);
  const entries = await withDatabase(() => readFacts(held.deps.db.sql, [{ tenantId, paymentId, fact }]));
  const told = {
    id: finding.objectId,
    fee: Number(finding.theirs?.["fee"]),
    currency: theirs(finding, "currency") ?? "",
  };
  const difference = compareFee(told, charge, entries.get(fact) ?? null);
  return { type: "looked", differences: difference === null ? [] : [difference] };
}

async function ownerOf({ deps }: HeldRun, objectId: string | null): Promise<ReadCharge | null> {
  if (objectId === null) return null;
  const wanted = [{ objectId, attemptId: null, tenantId: null }];
  const owners = await withDatabase(() => readOwners(deps.db.sql, deps.provider.name, wanted));
  return owners.get(objectId) ?? null;
}

function madeAtOf(side: Side | null): Date | null {
  const at = side?.["created_at"];
  return typeof at === "string" ? new Date(at) : null;
}

function theirs(finding: Finding, name: string): string | null {
  const value = finding.theirs?.[name];
  return typeof value === "string" ? value : null;
}

function ours(finding: Finding, name: string): string | null {
  const value = finding.ours?.[name];
  return typeof value === "string" ? value : null;
}
