import type {
  ChargeCall,
  ChargeStatus,
  LookupOutcome,
  ProviderCharge,
  ProviderRefundStatus,
  RefundLookupOutcome,
  RefundSendOutcome,
  SendOutcome,
} from "../../../src/domain/provider.js";
import {
  ABSENT,
  decline,
  found,
  notPerformed,
  object,
  rejection,
  unanswered,
  unknown,
} from "./charge-fixtures.js";
import { refundFound, refundMade } from "./effect-fixtures.js";

/** What befalls one send on its way. `late`: no answer, and the effect comes after the next question or send. */
export const SEND_FAULTS = [
  "none",
  "refused",
  "rate_limited",
  "lost_before",
  "lost_after",
  "late",
  "error_before",
  "error_after",
  "locked",
] as const;
/** `rejected`: the request itself is found wrong before it is executed. */
export const EFFECT_FAULTS = [...SEND_FAULTS, "rejected"] as const;
export type SendFault = (typeof EFFECT_FAULTS)[number];

/** What the bank says when a confirm is executed. */
export const VERDICTS = ["succeeded", "authorized", "pending", "requires_action", "declined"] as const;
export type Verdict = (typeof VERDICTS)[number];
/** What becomes of an effect that is executed; a capture or cancel that is not declined is done at once. */
export const EFFECT_VERDICTS = ["done", "pending", "fails", "declined"] as const;
export type EffectVerdict = (typeof EFFECT_VERDICTS)[number];

/** What happens to the object without us: the customer at the browser, the bank, somebody at the dashboard, time. */
export const OUTSIDE = [
  "nothing",
  "pays",
  "fails",
  "cancels",
  "captures",
  "captures_part",
  "lapses",
  "refunds",
  "settles_refunds",
  "bounces_refunds",
] as const;
export type Outside = (typeof OUTSIDE)[number];

/** An effect as it was fixed at its accept: each send of it carries the same. */
export interface ModelEffect {
  readonly call: "capture" | "cancel" | "refund";
  readonly attemptId: string;
  readonly amount: number | null;
}

interface ModelRefund {
  readonly id: string;
  readonly amount: number;
  status: ProviderRefundStatus;
}

/** A stored result: how it is told the first time, and when it is replayed. */
type Stored = (replayed: boolean) => SendOutcome | RefundSendOutcome;

/** After so long Stripe may forget a key (docs.stripe.com/api/idempotent_requests). */
const PRUNED_AFTER_MS = 86_400_000;
const AMOUNT = 4200;
const PART = 1_500;
const OUTSIDE_REFUND = 700;

const storedError: Stored = (replayed) =>
  replayed ? unknown("stored_error", true) : unknown("server_error");
const conflict: Stored = (replayed) => unknown("state_conflict", replayed);
const declined: Stored = (replayed) => decline(replayed);

/**
 * One object at a provider with Stripe's rules: a key's first result is kept and replayed, a refusal before execution
 * keeps nothing, and the object's own state refuses what does not fit it, for ever.
 */
export class ModelProvider {
  status: ChargeStatus | null = null;
  /** A part can be captured of what was meant to be captured by hand alone. */
  isManual = false;
  /** How often a confirm was executed with success, or the customer paid: never more than once. */
  timesPaid = 0;
  captured = 0;
  lapsed = false;
  refundedOutside = 0;
  nowMs = 0;
  /** How often the effect of an attempt was executed. */
  readonly executed = new Map<string, number>();
  readonly refunds = new Map<string, ModelRefund>();
  readonly #results = new Map<string, { readonly stored: Stored; readonly sinceMs: number }>();
  readonly #late: { readonly key: string; readonly execute: () => Stored }[] = [];

  send(call: ChargeCall, key: string, resend: boolean, fault: SendFault, verdict: Verdict): SendOutcome {
    return this.#deliver(key, resend, fault, () => this.#execute(call, verdict)) as SendOutcome;
  }

  sendEffect(
    effect: ModelEffect,
    key: string,
    resend: boolean,
    fault: SendFault,
    verdict: EffectVerdict,
  ): SendOutcome | RefundSendOutcome {
    return this.#deliver(key, resend, fault, () => this.#executeEffect(effect, verdict));
  }

  find(answers: boolean): LookupOutcome {
    if (!answers) return unanswered("server_error");
    return this.status === null ? ABSENT : found(this.status, this.#amounts());
  }

  get(answers: boolean): LookupOutcome {
    if (!answers) return unanswered("timeout");
    if (this.status === null) throw new Error("asked for an id that was never given out");
    return found(this.status, this.#amounts());
  }

  findRefund(attemptId: string, answers: boolean): RefundLookupOutcome {
    if (!answers) return unanswered("server_error");
    const refund = this.refunds.get(attemptId);
    return refund === undefined ? ABSENT : refundFound(refund.status, { ...refund, attemptId });
  }

  getRefund(refundId: string, answers: boolean): RefundLookupOutcome {
    if (!answers) return unanswered("timeout");
    const [attemptId, refund] = [...this.refunds].find(([, { id }]) => id === refundId) ?? [];
    if (attemptId === undefined || refund === undefined) {
      throw new Error("asked for the id of a refund that was never given out");
    }
    return refundFound(refund.status, { ...refund, attemptId });
  }

  /** Requests that were still under way arrive now. */
  arrive(): void {
    for (const { key, execute } of this.#late.splice(0)) {
      if (this.#kept(key) === null) this.#results.set(key, { stored: execute(), sinceMs: this.nowMs });
    }
  }

  outside(what: Outside): void {
    if (this.status === null || what === "nothing") return;
    if (this.status === "authorized") return this.#outsideAuthorized(what);
    if (this.status === "succeeded") return this.#outsidePaid(what);
    const open = this.status === "requires_action" || this.status === "declined" || this.status === "pending";
    if (!open && !(this.status === "created" && what === "cancels")) return;
    if (what === "pays") this.#pay("succeeded");
    if (what === "fails") this.status = "declined";
    if (what === "cancels" && this.status !== "pending") this.status = "canceled";
  }

  /** What a new refund could still take. */
  get refundable(): number {
    const made = [...this.refunds.values()].filter(({ status }) => status !== "failed");
    return this.captured - this.refundedOutside - made.reduce((sum, { amount }) => sum + amount, 0);
  }

  #outsideAuthorized(what: Outside): void {
    if (what === "captures") this.#capture(AMOUNT);
    if (what === "captures_part" && this.isManual) this.#capture(PART);
    if (what === "cancels" || what === "lapses") {
      this.status = "canceled";
      this.lapsed = what === "lapses";
    }
  }

  #outsidePaid(what: Outside): void {
    if (what === "refunds" && this.refundable >= OUTSIDE_REFUND) this.refundedOutside += OUTSIDE_REFUND;
    for (const refund of this.refunds.values()) {
      if (what === "settles_refunds" && refund.status === "pending") refund.status = "succeeded";
      if (what === "bounces_refunds") refund.status = "failed";
    }
  }

  #deliver(key: string, resend: boolean, fault: SendFault, execute: () => Stored) {
    const refusedEarly = fault === "refused" || fault === "rate_limited" || fault === "rejected";
    if (refusedEarly && resend) return unknown("resend_refused");
    if (fault === "refused") return notPerformed("unreachable");
    if (fault === "rate_limited") return notPerformed("rate_limited", 1_500);
    if (fault === "rejected") return rejection();
    if (fault === "locked") return unknown("object_locked");
    if (fault === "lost_before") return unknown("timeout");
    if (this.#late.some((one) => one.key === key)) return unknown("key_in_use");
    if (fault === "late") {
      this.#late.push({ key, execute });
      return unknown("timeout");
    }
    const kept = this.#kept(key);
    if (kept !== null) return fault === "none" ? kept(true) : unknown("connection_lost");
    const stored = fault === "error_before" ? storedError : execute();
    const shown = fault === "error_after" ? storedError : stored;
    this.#results.set(key, { stored: shown, sinceMs: this.nowMs });
    return fault === "lost_after" ? unknown("connection_lost") : shown(false);
  }

  #kept(key: string): Stored | null {
    const kept = this.#results.get(key);
    return kept === undefined || this.nowMs - kept.sinceMs >= PRUNED_AFTER_MS ? null : kept.stored;
  }

  #amounts(): Partial<ProviderCharge> {
    return { amountCaptured: this.captured, lapsed: this.lapsed };
  }

  /** The object as it is now, which a replay shows as it was. */
  #object(status: ChargeStatus): Stored {
    const amounts = this.#amounts();
    return (replayed) => object(status, amounts, replayed);
  }

  #execute(call: ChargeCall, verdict: Verdict): Stored {
    switch (call) {
      case "create":
        this.status ??= "created";
        return this.#object(this.status);
      case "confirm":
        if (this.status !== "created") return conflict;
        if (verdict === "succeeded" || verdict === "authorized") this.#pay(verdict);
        this.status = verdict;
        return verdict === "declined" ? declined : this.#object(verdict);
      case "fence":
        return this.#cancel();
    }
  }

  #executeEffect(effect: ModelEffect, verdict: EffectVerdict): Stored {
    if (effect.call === "cancel") return this.#counted(effect, this.#cancel());
    const amount = effect.amount ?? Number.NaN;
    if (effect.call === "refund")
      return this.#counted(effect, this.#refund(effect.attemptId, amount, verdict));
    if (this.status !== "authorized" || amount > AMOUNT) return conflict;
    if (verdict === "declined") return declined;
    this.#capture(amount);
    return this.#counted(effect, this.#object("succeeded"));
  }

  #counted({ attemptId }: ModelEffect, stored: Stored): Stored {
    const isDone = stored !== conflict && stored !== declined;
    if (isDone) this.executed.set(attemptId, (this.executed.get(attemptId) ?? 0) + 1);
    return stored;
  }

  #cancel(): Stored {
    const { status } = this;
    if (status === null || status === "succeeded" || status === "pending" || status === "canceled")
      return conflict;
    this.status = "canceled";
    return this.#object("canceled");
  }

  #refund(attemptId: string, amount: number, verdict: EffectVerdict): Stored {
    if (this.status !== "succeeded" || amount > this.refundable) return conflict;
    if (verdict === "declined") return declined;
    const statuses = { done: "succeeded", pending: "pending", fails: "failed" } as const;
    const status = statuses[verdict];
    const id = `re_${attemptId}_${this.refunds.size}`;
    this.refunds.set(attemptId, { id, amount, status });
    return (replayed) => refundMade(status, { id, amount, attemptId }, replayed);
  }

  #pay(status: "succeeded" | "authorized"): void {
    if (status === "succeeded") this.captured = AMOUNT;
    this.status = status;
    this.timesPaid += 1;
  }

  #capture(amount: number): void {
    this.status = "succeeded";
    this.captured = amount;
  }
}
