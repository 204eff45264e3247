import type { DisputeStatus } from "../../src/domain/provider.js";
import { keyOf, ok, refusal, unexpectedState } from "./provider-answers.js";
import {
  type Body,
  cardFailure,
  feeOf,
  type Intent,
  type Post,
  type SimulatedDispute,
  type SimulatedPayout,
  type SimulatedRefund,
  type WireAnswer,
} from "./provider-objects.js";
import type { Random } from "./random.js";

/** Keys may be removed once they are so old, and are then (docs.stripe.com/api/idempotent_requests). */
const PRUNED_AFTER_MS = 24 * 3_600_000;
/** Until when an authorisation can be captured. Stripe gives days; what matters is that it ends. */
const AUTHORIZATION_MS = 3 * 3_600_000;
const DISPUTE_FEE = 1_500;

/** What the provider is asked to get wrong, to show that the checks see it. */
export interface ProviderFlaws {
  /** Every request runs, whatever its key. */
  readonly ignoresKeys?: boolean;
  /** An object that is paid can be confirmed, and is paid, again. */
  readonly chargesTwice?: boolean;
}

interface KeyRecord {
  readonly fingerprint: string;
  readonly sinceMs: number;
  answer: WireAnswer | null;
}

export interface ProviderNews {
  readonly type: string;
  readonly intent: Intent;
  /** The id of what the news is about, where that is not the intent. */
  readonly objectId: string;
}

export interface ModelOptions {
  readonly random: Random;
  readonly now: () => number;
  /** Told of every change, when it happens. */
  readonly changed: (news: ProviderNews) => void;
  readonly payoutMade: (payout: SimulatedPayout) => void;
  /** Whether this request ends with a 500 that is stored, before or after its effect. */
  readonly breaks: (post: Post) => "before" | "after" | null;
  readonly flaws: ProviderFlaws;
}

/** Stripe's objects and rules, as far as Pawl rests on them (sections 1 and 6 of the notes on Stripe, its public pages). */
export class ProviderModel {
  readonly intents = new Map<string, Intent>();
  readonly refunds = new Map<string, SimulatedRefund>();
  readonly disputes = new Map<string, SimulatedDispute>();
  readonly payouts = new Map<string, SimulatedPayout>();
  /** When each movement of the balance was made, by its id. */
  readonly movedAtMs = new Map<string, number>();
  /** Keys that were sent with other parameters than before. */
  readonly mismatches: string[] = [];
  readonly #keys = new Map<string, KeyRecord>();
  readonly #options: ModelOptions;

  constructor(options: ModelOptions) {
    this.#options = options;
  }

  /** The request arrives. An answer: that is all; null: it runs, until `finish`. */
  begin(post: Post): WireAnswer | null {
    const fingerprint = `${post.call} ${post.intentId ?? ""} ${post.parameters}`;
    const record = this.#recordOf(keyOf(post));
    if (record !== null && this.#options.flaws.ignoresKeys !== true) {
      if (record.fingerprint !== fingerprint) {
        this.mismatches.push(post.key);
        return refusal(400, "idempotency_error");
      }
      if (record.answer === null) return refusal(409, "idempotency_key_in_use");
      return { ...record.answer, replayed: true };
    }
    const intent = post.intentId === null ? null : this.visible(post.intentId, post.account);
    if (post.intentId !== null && intent === null) return refusal(404, "resource_missing");
    if (intent !== null) {
      if (intent.lockedBy !== null) return refusal(429, "lock_timeout");
      intent.lockedBy = post.id;
    }
    this.#keys.set(keyOf(post), { fingerprint, sinceMs: this.#options.now(), answer: null });
    return null;
  }

  /** The effect, and the answer that is kept under the key. */
  finish(post: Post): WireAnswer {
    const intent = post.intentId === null ? null : this.#intent(post.intentId);
    if (intent !== null) intent.lockedBy = null;
    const breaks = this.#options.breaks(post);
    const performed = breaks === "before" ? null : this.#perform(post, intent);
    const answer = breaks === null && performed !== null ? performed : refusal(500, "api_error");
    const record = this.#keys.get(keyOf(post));
    if (record !== undefined) record.answer = answer;
    return answer;
  }

  /** What a question by its id finds. Null: 404. */
  visible(id: string, account: string): Intent | null {
    const intent = this.intents.get(id);
    return intent?.account === account && intent.missingUntilMs <= this.#options.now() ? intent : null;
  }

  /** Whom the metadata names, among those that are there. */
  markedFor(attemptId: string, account: string): Intent[] {
    const all = [...this.intents.values()];
    return all.filter(({ id, marks }) => marks.attemptId === attemptId && this.visible(id, account) !== null);
  }

  #recordOf(key: string): KeyRecord | null {
    const record = this.#keys.get(key) ?? null;
    const isOld = record !== null && this.#options.now() - record.sinceMs >= PRUNED_AFTER_MS;
    if (!isOld || record.answer === null) return record;
    this.#keys.delete(key);
    return null;
  }

  #perform(post: Post, intent: Intent | null): WireAnswer {
    if (post.call === "create") return this.#create(post);
    if (intent === null) return refusal(400, "parameter_missing");
    switch (post.call) {
      case "confirm":
        return this.#confirm(intent);
      case "cancel":
        return this.cancel(intent) ? this.#shown(intent) : unexpectedState(intent);
      case "capture": {
        const { amount } = JSON.parse(post.parameters) as { amount: number };
        return this.capture(intent, amount) ? this.#shown(intent) : unexpectedState(intent);
      }
      case "refund":
        return this.#refund(post, intent);
    }
  }

  #create(post: Post): WireAnswer {
    const parameters = JSON.parse(post.parameters) as Pick<
      Intent,
      "amount" | "card" | "manual" | "attemptId" | "tenantId"
    >;
    const { attemptId, tenantId } = parameters;
    const intent: Intent = {
      ...parameters,
      marks: { attemptId, tenantId },
      missingUntilMs: 0,
      account: post.account,
      id: `pi_${String(this.intents.size + 1)}`,
      createdAtMs: this.#options.now(),
      status: "requires_confirmation",
      captured: 0,
      capturable: 0,
      charges: 0,
      paidAtMs: null,
      failure: null,
      authorizedUntilMs: null,
      lapsed: false,
      lockedBy: null,
    };
    this.intents.set(intent.id, intent);
    this.#tell(intent, "payment_intent.created");
    return this.#shown(intent);
  }

  #confirm(intent: Intent): WireAnswer {
    const again = this.#options.flaws.chargesTwice === true && intent.status === "succeeded";
    if (intent.status !== "requires_confirmation" && !again) return unexpectedState(intent);
    switch (intent.card) {
      case "pm_declines":
        this.decline(intent);
        return { ...refusal(402, "card_declined"), failure: cardFailure("card_declined") };
      case "pm_asks_customer":
        intent.status = "requires_action";
        this.#tell(intent, "payment_intent.requires_action");
        return this.#shown(intent);
      case "pm_takes_time":
        intent.status = "processing";
        this.#tell(intent, "payment_intent.processing");
        return this.#shown(intent);
      default:
        this.pay(intent);
        return this.#shown(intent);
    }
  }

  /** The bank says yes: the amount is taken, or held. */
  pay(intent: Intent): void {
    intent.charges += 1;
    intent.paidAtMs ??= this.#options.now();
    intent.failure = null;
    if (intent.manual) {
      intent.status = "requires_capture";
      intent.capturable = intent.amount;
      intent.authorizedUntilMs = this.#options.now() + AUTHORIZATION_MS;
      this.#tell(intent, "payment_intent.amount_capturable_updated");
    } else {
      this.#take(intent, intent.amount);
      this.#tell(intent, "payment_intent.succeeded");
    }
  }

  /** The bank says no: the object can be paid with another card. */
  decline(intent: Intent): void {
    intent.status = "requires_payment_method";
    intent.failure = cardFailure("card_declined");
    this.#tell(intent, "payment_intent.payment_failed");
  }

  /** False: not in this state. */
  cancel(intent: Intent, lapsed = false): boolean {
    const isOver = ["succeeded", "canceled", "processing"].includes(intent.status);
    if (isOver) return false;
    intent.status = "canceled";
    intent.lapsed = lapsed;
    intent.capturable = 0;
    this.#tell(intent, "payment_intent.canceled");
    return true;
  }

  capture(intent: Intent, amount: number): boolean {
    if (intent.status !== "requires_capture" || amount > intent.capturable) return false;
    this.#take(intent, amount);
    intent.capturable = 0;
    this.#tell(intent, "payment_intent.succeeded");
    return true;
  }

  #take(intent: Intent, amount: number): void {
    intent.status = "succeeded";
    intent.captured = amount;
    this.#moved(`txn_${intent.id}`);
  }

  #refund(post: Post, intent: Intent): WireAnswer {
    const parameters = JSON.parse(post.parameters) as Pick<
      SimulatedRefund,
      "amount" | "attemptId" | "tenantId"
    >;
    if (this.isDisputed(intent)) return refusal(400, "charge_disputed");
    if (intent.status !== "succeeded" || parameters.amount > this.refundable(intent)) {
      return { ...refusal(400, ""), param: "amount" };
    }
    const pends = this.#options.random.chance(0.25);
    return ok({
      refund: { ...this.refund(intent, { ...parameters, status: pends ? "pending" : "succeeded" }) },
    });
  }

  refund(intent: Intent, made: Omit<SimulatedRefund, "id" | "intentId" | "createdAtMs">): SimulatedRefund {
    const refund: SimulatedRefund = {
      ...made,
      id: `re_${String(this.refunds.size + 1)}`,
      intentId: intent.id,
      createdAtMs: this.#options.now(),
    };
    this.refunds.set(refund.id, refund);
    this.#moved(`txn_${refund.id}`);
    this.#tell(intent, "refund.created", refund.id);
    return refund;
  }

  endRefund(refund: SimulatedRefund, status: "succeeded" | "failed"): void {
    refund.status = status;
    if (status === "failed") this.#moved(`txn_${refund.id}_failure`);
    const intent = this.#intent(refund.intentId);
    this.#tell(intent, status === "failed" ? "refund.failed" : "refund.updated", refund.id);
  }

  refundsOf(intent: Intent): SimulatedRefund[] {
    return [...this.refunds.values()].filter((refund) => refund.intentId === intent.id);
  }

  refundable(intent: Intent): number {
    const gone = this.refundsOf(intent).filter((refund) => refund.status !== "failed");
    return intent.captured - gone.reduce((sum, refund) => sum + refund.amount, 0);
  }

  isDisputed(intent: Intent): boolean {
    return [...this.disputes.values()].some(
      (dispute) =>
        dispute.intentId === intent.id && ["open", "under_review", "lost"].includes(dispute.status),
    );
  }

  openDispute(intent: Intent, amount: number): SimulatedDispute {
    const id = `dp_${String(this.disputes.size + 1)}`;
    const made = { id, intentId: intent.id, amount, createdAtMs: this.#options.now() };
    const dispute: SimulatedDispute = { ...made, status: "open", movements: [] };
    this.disputes.set(id, dispute);
    this.#move(dispute, -amount, DISPUTE_FEE);
    this.#tell(intent, "charge.dispute.created", id);
    return dispute;
  }

  moveDispute(dispute: SimulatedDispute, status: DisputeStatus): void {
    dispute.status = status;
    if (status === "won") this.#move(dispute, dispute.amount, 0);
    const ended = status === "won" || status === "lost";
    const type = ended ? "charge.dispute.closed" : "charge.dispute.updated";
    this.#tell(this.#intent(dispute.intentId), type, dispute.id);
  }

  #move(dispute: SimulatedDispute, amount: number, fee: number): void {
    const transactionId = `txn_${dispute.id}_${String(dispute.movements.length + 1)}`;
    dispute.movements.push({ transactionId, amount, currency: "usd", fee });
    this.#moved(transactionId);
  }

  #moved(transactionId: string): void {
    this.movedAtMs.set(transactionId, this.#options.now());
  }

  /** Everything that is paid on this account and was not paid out yet goes to the bank. */
  payOut(account: string): void {
    const done = new Set(
      [...this.payouts.values()].flatMap((payout) => payout.movements.map((one) => one.intentId)),
    );
    const movements = [...this.intents.values()]
      .filter((intent) => intent.account === account && intent.captured > 0 && !done.has(intent.id))
      .map((intent) => ({
        transactionId: `txn_${intent.id}`,
        intentId: intent.id,
        amount: intent.captured - feeOf(intent.captured),
      }));
    if (movements.length === 0) return;
    const payout = { id: `po_${String(this.payouts.size + 1)}`, movements };
    this.payouts.set(payout.id, payout);
    this.#options.payoutMade(payout);
  }

  /** As a GET shows it now. */
  bodyOf(intent: Intent): Body {
    return { intent: { ...intent }, fee: intent.captured > 0 ? feeOf(intent.captured) : null };
  }

  #shown(intent: Intent): WireAnswer {
    return ok(this.bodyOf(intent));
  }

  #intent(id: string): Intent {
    const intent = this.intents.get(id);
    if (intent === undefined) throw new Error(`there is no ${id}`);
    return intent;
  }

  #tell(intent: Intent, type: string, objectId: string = intent.id): void {
    this.#options.changed({ type, intent, objectId });
  }
}
