import type { Difference } from "../domain/finding.js";
import { feeFactOf } from "../domain/ledger.js";
import type { ListedEvent, ListedTransaction, PageOutcome, PageRequest } from "../domain/provider.js";
import { compareCharge } from "../domain/reconcile.js";
import { compareDispute, compareRefund, compareTransaction } from "../domain/reconcile-after-charge.js";
import { type ReadCharge, readFacts, readOwners, readRefundsOf } from "../store/counterparts.js";
import { withDatabase } from "../store/db.js";
import type { FoundDifference } from "../store/reconciliation.js";
import { readCounterparts, wantedOf } from "./compare-charges.js";
import { readRefundCounterparts } from "./compare-refunds.js";
import { takeNotice } from "./receive-provider-event.js";
import { type HeldRun, nextPhase, type PhaseStep, type Position } from "./reconcile-run.js";
import { repairFindings } from "./repair-finding.js";

type PageOf<Item> = Extract<PageOutcome<Item>, { type: "page" }>;

/** One page of the provider's disputes against what our payments show of them. */
export async function compareDisputes(held: HeldRun, position: Position): Promise<PhaseStep> {
  const { deps } = held;
  const page = await held.ask("list_disputes", () => deps.provider.listDisputes(request(held, position)));
  held.leaveOut(page.unreadable);
  const owners = await ownersOf(
    held,
    page.items.map(({ chargeId }) => chargeId),
  );
  const found = page.items.flatMap((dispute) => {
    const charge = owners.get(dispute.chargeId ?? "") ?? null;
    const kept = charge?.disputes.find(({ id }) => id === dispute.id) ?? null;
    return compareDispute(dispute, charge, kept, held.settledBefore);
  });
  return stepOf(position, page, await repairFindings(held, found));
}

/** One page of the movements of the provider's balance against our books. */
export async function compareTransactions(held: HeldRun, position: Position): Promise<PhaseStep> {
  const { deps } = held;
  const page = await held.ask("list_transactions", () =>
    deps.provider.listTransactions(request(held, position)),
  );
  held.leaveOut(page.unreadable);
  const compare = await readBooks(held, page.items);
  const found: Difference[] = [];
  for (const transaction of page.items) found.push(...(await compare(transaction)));
  return stepOf(position, page, await repairFindings(held, found));
}

/** What our books have of these movements; where they tell of another state than ours, their object is asked about. */
async function readBooks(held: HeldRun, transactions: readonly ListedTransaction[]) {
  const { deps } = held;
  const owners = await ownersOf(held, transactions.map(chargeIdOf));
  const ownerOf = (transaction: ListedTransaction) => owners.get(chargeIdOf(transaction) ?? "") ?? null;
  const refundNames = transactions.flatMap(({ of }) =>
    of.type === "refund" && of.chargeId !== null ? [{ refundId: of.refundId, chargeId: of.chargeId }] : [],
  );
  const refunds = await withDatabase(() => readRefundsOf(deps.db.sql, deps.provider.name, refundNames));
  const facts = transactions.flatMap((transaction) => {
    const charge = ownerOf(transaction);
    if (charge === null || transaction.of.type !== "charge") return [];
    const { tenantId, paymentId } = charge;
    return [{ tenantId, paymentId, fact: feeFactOf(transaction.id) }];
  });
  const entries = await withDatabase(() => readFacts(deps.db.sql, facts));
  return async (transaction: ListedTransaction): Promise<readonly Difference[]> => {
    const { of } = transaction;
    const charge = ownerOf(transaction);
    const disputeId = of.type === "dispute" ? of.disputeId : null;
    const counterpart = {
      charge,
      refund: of.type === "refund" ? (refunds.get(of.refundId) ?? null) : null,
      kept: charge?.disputes.find(({ id }) => id === disputeId) ?? null,
      fee: entries.get(feeFactOf(transaction.id)) ?? null,
    };
    const verdict = compareTransaction(transaction, counterpart, held.settledBefore);
    switch (verdict.type) {
      case "same":
        return [];
      case "differs":
        return [verdict.difference];
      case "look":
        return verdict.at === "charge"
          ? lookAtCharge(held, verdict.objectId)
          : lookAtRefund(held, verdict.objectId);
    }
  };
}

async function lookAtCharge(held: HeldRun, objectId: string): Promise<readonly Difference[]> {
  const answer = await held.askAbout(objectId, "get", () => held.deps.provider.getCharge(objectId));
  if (answer?.type !== "found") return [];
  const read = await readCounterparts(held, [wantedOf(answer.charge)]);
  return compareCharge(answer.charge, read(wantedOf(answer.charge)), held.moment);
}

async function lookAtRefund(held: HeldRun, refundId: string): Promise<readonly Difference[]> {
  const answer = await held.askAbout(refundId, "get_refund", () => held.deps.provider.getRefund(refundId));
  if (answer?.type !== "found") return [];
  const read = await readRefundCounterparts(held, [answer.refund]);
  return compareRefund(answer.refund, read(answer.refund), held.moment);
}

/** One page of the events that the provider could not deliver: taken in as if they had come. */
export async function takeUndelivered(held: HeldRun, position: Position): Promise<PhaseStep> {
  const { deps } = held;
  const page = await held.ask("list_events", () =>
    deps.provider.listUndeliveredEvents(request(held, position)),
  );
  held.leaveOut(page.unreadable);
  const findings: FoundDifference[] = [];
  for (const event of page.items) {
    await held.keep();
    const received = await takeNotice(deps, event.notice, event.payload);
    if (received.type === "stored") findings.push(takenIn(event));
  }
  return stepOf(position, page, findings);
}

/** Stripe tries to deliver an event for up to three days (docs.stripe.com/webhooks, "Retry behavior"). */
const DELIVERED_WITHIN_MS = 3 * 86_400_000;

/**
 * One page of the news of payouts that may have come in the lost time, delivered or not: taken in as if they came now.
 * Each movement posts once, however often it is told.
 */
export async function takePayouts(held: HeldRun, position: Position): Promise<PhaseStep> {
  const { deps } = held;
  const createdFrom = new Date(held.run.windowFrom.getTime() - DELIVERED_WITHIN_MS);
  const asked = { ...request(held, position), createdFrom };
  const page = await held.ask("list_events", () => deps.provider.listPayoutEvents(asked));
  held.leaveOut(page.unreadable);
  for (const event of page.items) {
    await held.keep();
    await takeNotice(deps, event.notice, event.payload);
  }
  return stepOf(position, page, []);
}

function takenIn({ notice }: ListedEvent): FoundDifference {
  const { eventId, type, subject } = notice;
  const marks = subject.type === "charge" ? subject.tenantId : null;
  return {
    kind: "event_undelivered",
    objectId: eventId,
    tenantId: marks,
    paymentId: null,
    ours: null,
    theirs: { type, object_id: subject.objectId },
    detail: "the provider could not deliver the event; it is in the inbox now",
    state: "repaired",
  };
}

function request(held: HeldRun, { after }: Position): PageRequest {
  const { windowFrom: createdFrom, windowTo: createdTo } = held.run;
  return { createdFrom, createdTo, cursor: after };
}

function stepOf<Item>(
  position: Position,
  page: PageOf<Item>,
  findings: readonly FoundDifference[],
): PhaseStep {
  const next = page.next === null ? null : { ...nextPhase(position), after: page.next };
  return { objects: page.items.length, findings, position: next };
}

function chargeIdOf({ of }: ListedTransaction): string | null {
  return of.type === "other" ? null : of.chargeId;
}

function ownersOf(
  { deps }: HeldRun,
  chargeIds: readonly (string | null)[],
): Promise<Map<string, ReadCharge>> {
  const known = new Set(chargeIds.flatMap((id) => (id === null ? [] : [id])));
  const wanted = [...known].map((objectId) => ({ objectId, attemptId: null, tenantId: null }));
  return withDatabase(() => readOwners(deps.db.sql, deps.provider.name, wanted));
}
