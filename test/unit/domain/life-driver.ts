import { admit, type EffectRequest } from "../../../src/domain/admit-effect.js";
import { applyChange } from "../../../src/domain/apply-change.js";
import { type Attempt, providerKey } from "../../../src/domain/attempt.js";
import { afterLookup, afterSend } from "../../../src/domain/charge-answers.js";
import {
  budgetIsOver,
  type Change,
  type ChargeView,
  type Question,
  type Then,
} from "../../../src/domain/charge-change.js";
import { firstStep, leftUnknown } from "../../../src/domain/charge-steps.js";
import { afterEffectLookup, afterEffectSend } from "../../../src/domain/effect-answers.js";
import { effectIsLate, effectLeftUnknown, firstEffectStep } from "../../../src/domain/effect-steps.js";
import { type LedgerEntry, postingsOf } from "../../../src/domain/ledger.js";
import { moneyFactsOf } from "../../../src/domain/money-facts.js";
import type { Payment } from "../../../src/domain/payment.js";
import type { LookupOutcome, ProviderCall, SendOutcome } from "../../../src/domain/provider.js";
import type { Refund } from "../../../src/domain/refund.js";
import { attemptIn, OWN_ACCOUNT, POLICY, paymentWith, UNKNOWN_ACCOUNT } from "./charge-fixtures.js";
import { effectAttempt, refundWith } from "./effect-fixtures.js";
import {
  type EffectVerdict,
  ModelProvider,
  type Outside,
  type SendFault,
  type Verdict,
} from "./model-provider.js";

/** What happens during one step of a worker. */
export interface LifeWeather {
  readonly send: SendFault;
  readonly verdict: Verdict;
  readonly effect: EffectVerdict;
  readonly answers: boolean;
  readonly outside: Outside;
  /** The worker dies, or loses its lease, after the call and before its answer is recorded. */
  readonly dies: boolean;
  readonly arrives: boolean;
  readonly accountKnown: boolean;
  readonly tookMs: number;
}

export const FINE: LifeWeather = {
  send: "none",
  verdict: "authorized",
  effect: "done",
  answers: true,
  outside: "nothing",
  dies: false,
  arrives: true,
  accountKnown: true,
  tookMs: 50,
};

/** One attempt, with what a worker that holds it is about to do. */
export interface Work {
  attempt: Attempt;
  refund: Refund | null;
  dueMs: number | null;
  /** News came while a worker held it: due again as soon as that one gives it back. */
  nudged: boolean;
  /** The worker's next step; an answer that is in its hands is a decision. Null: nobody holds the attempt. */
  next: Then | ((view: ChargeView) => Change) | null;
  /** What the key was answered, once for ever. */
  answer: Change["answer"] | null;
}

export type LifeEntry =
  | {
      readonly type: "send";
      readonly attemptId: string;
      readonly call: ProviderCall;
      readonly key: string;
      readonly atMs: number;
      readonly outcome: string;
    }
  | { readonly type: "question"; readonly attemptId: string; readonly answered: boolean }
  | {
      readonly type: "write";
      readonly change: Change;
      readonly before: ChargeView;
      readonly after: ChargeView;
    };

const LEASE_MS = 60_000;
const MOST_STEPS = 12;

/**
 * A payment with all its attempts, driven as operations/run-attempt.ts does, with the model in place of the provider,
 * clock and database. Between any two steps of one worker others may take theirs.
 */
export class Life {
  readonly provider = new ModelProvider();
  readonly works: Work[] = [workOn(attemptIn("started", { livemode: false }), null, 0)];
  readonly log: LifeEntry[] = [];
  readonly entries = new Map<string, LedgerEntry>();
  payment: Payment;
  #nowMs = 0;

  constructor(readonly isManual: boolean) {
    this.provider.isManual = isManual;
    this.payment = paymentWith({ captureMethod: isManual ? "manual" : "automatic" });
  }

  get now(): Date {
    return new Date(paymentWith().createdAt.getTime() + this.#nowMs);
  }

  msUntilDue({ dueMs }: Work): number {
    return dueMs === null ? Number.POSITIVE_INFINITY : dueMs - this.#nowMs;
  }

  pass(ms: number): void {
    this.#nowMs += ms;
    this.provider.nowMs += ms;
  }

  viewOf({ attempt, refund }: Work): ChargeView {
    const { payment, now } = this;
    return { attempt, refund, payment, now, policy: POLICY, recovering: false, earlierRuns: "harmless" };
  }

  /** As operations/request-effect.ts and store/accept-effect.ts, under the payment's lock. */
  request(asked: EffectRequest): boolean {
    const admission = admit(this.payment, asked);
    if (admission.type === "refused") return false;
    const number = this.works.length;
    const id = `att_${asked.kind}_${number}`;
    const { payment, now } = this;
    const refund =
      asked.kind === "refund" && admission.amount !== null
        ? refundWith({ id: `re_${number}`, attemptId: id, amount: admission.amount, createdAt: now })
        : null;
    const attempt = effectAttempt(asked.kind, "started", {
      id,
      amount: admission.amount,
      refundId: refund?.id ?? null,
      createdAt: now,
    });
    this.payment = {
      ...payment,
      version: payment.version + 1,
      openEffect: refund === null ? id : payment.openEffect,
      refundReserved: payment.refundReserved + (refund?.amount ?? 0),
    };
    this.works.push(workOn(attempt, refund, this.#nowMs));
    return true;
  }

  /** An event of the provider's, or our own look: the attempt is due, and waits under a live lease. */
  nudge(work: Work): void {
    if (work.next === null) work.dueMs = this.#nowMs;
    else work.nudged = true;
  }

  /** One step of the worker that holds the attempt; nobody does: the claim, at once or when it is due. */
  step(work: Work, weather: LifeWeather): void {
    if (work.next === null) return this.#claim(work, weather);
    const { next } = work;
    if (typeof next === "function") return this.#write(work, next);
    if (next.type === "send") this.#send(work, next.call, weather);
    if (next.type === "ask") this.#ask(work, next.question, weather);
    if (weather.arrives) this.provider.arrive();
    this.provider.outside(weather.outside);
    this.pass(weather.tookMs);
    if (!weather.dies) return;
    work.next = null;
    work.dueMs = this.#nowMs + LEASE_MS;
  }

  /** A whole claim in one weather. */
  claim(work: Work, weather: LifeWeather = FINE): void {
    for (let steps = 0; steps < 2 * MOST_STEPS; steps += 1) {
      this.step(work, weather);
      if (work.next === null) return;
    }
    throw new Error(`a claim of ${work.attempt.id} does not come to an end`);
  }

  /** As store/attempts.ts: a fresh attempt's claim records that its first call is about to be sent. */
  #claim(work: Work, weather: LifeWeather): void {
    if (work.dueMs === null) return;
    this.pass(Math.max(0, work.dueMs - this.#nowMs));
    work.nudged = false;
    const { attempt } = work;
    const isCharge = attempt.kind === "charge";
    const fresh = attempt.state === "started" && weather.accountKnown && !budgetIsOver(this.viewOf(work));
    if (fresh) {
      const sentAt = isCharge
        ? { createFirstSentAt: attempt.createFirstSentAt ?? this.now }
        : { effectFirstSentAt: attempt.effectFirstSentAt ?? this.now };
      work.attempt = { ...attempt, ...sentAt, state: isCharge ? "creating" : "sending" };
    }
    work.attempt = { ...work.attempt, fence: attempt.fence + 1 };
    const account = weather.accountKnown ? OWN_ACCOUNT : UNKNOWN_ACCOUNT;
    const first = isCharge ? firstStep : firstEffectStep;
    const step = first(this.viewOf(work), account, fresh);
    if ("type" in step) {
      work.next = step;
      return;
    }
    // Decided from what the claim read, and once more where somebody has written meanwhile.
    work.next = (view) => {
      const again = first(view, account, fresh);
      return "type" in again ? step : again;
    };
  }

  #send(work: Work, call: ProviderCall, { send, verdict, effect }: LifeWeather): void {
    const { attempt } = work;
    if (call === "confirm" && budgetIsOver(this.viewOf(work))) {
      work.next = (view) => leftUnknown(view, "get");
      return;
    }
    const key = providerKey(attempt, call);
    const resend = call === "fence" ? false : attempt.unresolved;
    const atMs = this.#nowMs;
    if (call === "capture" || call === "cancel" || call === "refund") {
      if (effectIsLate(this.viewOf(work))) {
        work.next = effectLeftUnknown;
        return;
      }
      const { id: attemptId, amount } = attempt;
      const outcome = this.provider.sendEffect({ call, attemptId, amount }, key, resend, send, effect);
      this.log.push({ type: "send", attemptId, call, key, atMs, outcome: outcome.type });
      work.next = (view) => afterEffectSend(view, outcome);
      return;
    }
    const fault = send === "rejected" ? "none" : send;
    // Only what is captured by hand is held first.
    const said = verdict === "authorized" && !this.isManual ? "succeeded" : verdict;
    const told = said === "succeeded" && this.isManual ? "authorized" : said;
    const outcome: SendOutcome = this.provider.send(call, key, resend, fault, told);
    this.log.push({ type: "send", attemptId: attempt.id, call, key, atMs, outcome: outcome.type });
    work.next = (view) => afterSend(view, call, outcome);
  }

  #ask(work: Work, question: Question, { answers, dies }: LifeWeather): void {
    const { attempt, refund } = work;
    if (question === "find_refund" || question === "get_refund") {
      const outcome =
        question === "find_refund"
          ? this.provider.findRefund(attempt.id, answers)
          : this.provider.getRefund(refund?.providerRefundId ?? "", answers);
      work.next = (view) => afterEffectLookup(view, question, outcome);
    } else {
      const outcome: LookupOutcome =
        question === "find" ? this.provider.find(answers) : this.provider.get(answers);
      work.next = (view) =>
        attempt.kind === "charge"
          ? afterLookup(view, question, outcome)
          : afterEffectLookup(view, question, outcome);
    }
    this.log.push({ type: "question", attemptId: attempt.id, answered: answers && !dies });
  }

  #write(work: Work, decide: (view: ChargeView) => Change): void {
    const before = this.viewOf(work);
    const change = decide(before);
    const applied = applyChange(before, change);
    for (const entry of moneyFactsOf(before, change, applied).flatMap(postingsOf)) {
      const name = `${entry.fact}/${entry.leg}`;
      if (!this.entries.has(name)) this.entries.set(name, entry);
    }
    work.attempt = applied.attempt;
    work.refund = applied.refund;
    this.payment = applied.payment;
    work.answer ??= change.answer ?? null;
    this.log.push({ type: "write", change, before, after: this.viewOf(work) });
    const { then } = change;
    work.next = then.type === "send" || then.type === "ask" ? then : null;
    work.dueMs = then.type === "wait" ? this.#nowMs + then.ms : null;
    if (work.next !== null || !work.nudged) return;
    work.dueMs = this.#nowMs;
  }
}

function workOn(attempt: Attempt, refund: Refund | null, dueMs: number): Work {
  return { attempt, refund, dueMs, nudged: false, next: null, answer: null };
}
