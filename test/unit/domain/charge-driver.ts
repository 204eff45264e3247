import { applyChange } from "../../../src/domain/apply-change.js";
import { providerKey } from "../../../src/domain/attempt.js";
import { afterLookup, afterSend } from "../../../src/domain/charge-answers.js";
import { budgetIsOver, type Change, type ChargeView, type Then } from "../../../src/domain/charge-change.js";
import { firstStep } from "../../../src/domain/charge-steps.js";
import type { ChargeCall, SendOutcome } from "../../../src/domain/provider.js";
import { OWN_ACCOUNT, UNKNOWN_ACCOUNT, viewIn } from "./charge-fixtures.js";
import { ModelProvider, type Outside, type SendFault, type Verdict } from "./model-provider.js";

/** What happens during one step of a claim. */
export interface Weather {
  readonly send: SendFault;
  readonly verdict: Verdict;
  readonly answers: boolean;
  readonly outside: Outside;
  /** The worker dies after the call and before its answer is recorded. */
  readonly dies: boolean;
  readonly arrives: boolean;
  readonly tookMs: number;
}

export const CALM: Weather = {
  send: "none",
  verdict: "succeeded",
  answers: true,
  outside: "nothing",
  dies: false,
  arrives: true,
  tookMs: 50,
};

/** What went over the wire, and what the decisions made of it: what the invariants are checked against. */
export type Entry =
  | {
      readonly type: "send";
      readonly call: ChargeCall;
      readonly key: string;
      readonly late: boolean;
      outcome: SendOutcome["type"];
    }
  | { readonly type: "question"; readonly answered: boolean }
  | {
      readonly type: "write";
      readonly change: Change;
      readonly before: ChargeView;
      readonly after: ChargeView;
    };

/** Steps of one claim in operations/run-attempt.ts: what needs more waits for the next. */
const MOST_STEPS = 12;
const LEASE_MS = 60_000;

/** Drives one attempt as operations/run-attempt.ts does, with the model in place of the provider, clock and database. */
export class Driver {
  view: ChargeView = viewIn("started", { afterMs: 0 });
  readonly provider = new ModelProvider();
  readonly log: Entry[] = [];
  /** The most steps that any claim took. */
  longestClaim = 0;

  get ended(): boolean {
    return this.view.attempt.state === "completed";
  }

  /** One claim: what the worker does until it gives the lease back or dies. */
  claim(weathers: readonly Weather[], accountKnown: boolean): void {
    const markedNow = this.#claimRow(accountKnown);
    let step: Then | Change | null = firstStep(
      this.view,
      accountKnown ? OWN_ACCOUNT : UNKNOWN_ACCOUNT,
      markedNow,
    );
    for (let steps = 0; step !== null && steps < MOST_STEPS; steps += 1) {
      this.longestClaim = Math.max(this.longestClaim, steps + 1);
      step = this.#take(step, weathers[steps % weathers.length] ?? CALM);
    }
    // Out of steps with work left: the lease runs out in this worker's hands.
    if (step !== null) this.pass(LEASE_MS);
  }

  pass(ms: number): void {
    this.view = { ...this.view, now: new Date(this.view.now.getTime() + ms) };
    this.provider.nowMs += ms;
  }

  /** As store/attempts.ts: a fresh attempt's claim records that its create is about to be sent. */
  #claimRow(accountKnown: boolean): boolean {
    const { attempt, now } = this.view;
    const fresh = attempt.state === "started" && accountKnown && !budgetIsOver(this.view);
    const marks = fresh
      ? { state: "creating" as const, createFirstSentAt: attempt.createFirstSentAt ?? now }
      : {};
    this.view = { ...this.view, attempt: { ...attempt, fence: attempt.fence + 1, ...marks } };
    return fresh;
  }

  #take(step: Then | Change, weather: Weather): Then | null {
    if (!("type" in step)) return this.#write(step);
    if (step.type === "end") return null;
    if (step.type === "wait") {
      this.pass(step.ms);
      return null;
    }
    this.provider.outside(weather.outside);
    const change =
      step.type === "send"
        ? this.#send(step.call as ChargeCall, weather)
        : this.#ask(step.question as "find" | "get", weather);
    if (weather.arrives) this.provider.arrive();
    if (!weather.dies) return this.#write(change());
    this.pass(LEASE_MS);
    return null;
  }

  #send(call: ChargeCall, weather: Weather): () => Change {
    const { attempt } = this.view;
    const key = providerKey(attempt, call);
    const resend = call === "fence" ? false : attempt.unresolved;
    const late = budgetIsOver(this.view);
    const outcome = this.provider.send(call, key, resend, weather.send, weather.verdict);
    this.log.push({ type: "send", call, key, late, outcome: weather.dies ? "unknown" : outcome.type });
    this.pass(weather.tookMs);
    return () => afterSend(this.view, call, outcome);
  }

  #ask(question: "find" | "get", weather: Weather): () => Change {
    const outcome =
      question === "find" ? this.provider.find(weather.answers) : this.provider.get(weather.answers);
    this.log.push({ type: "question", answered: outcome.type !== "unanswered" && !weather.dies });
    this.pass(weather.tookMs);
    return () => afterLookup(this.view, question, outcome);
  }

  #write(change: Change): Then {
    const before = this.view;
    const applied = applyChange(before, change);
    this.view = { ...before, attempt: applied.attempt, payment: applied.payment };
    this.log.push({ type: "write", change, before, after: this.view });
    return change.then;
  }
}
