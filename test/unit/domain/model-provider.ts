import type { ChargeCall, ChargeStatus, LookupOutcome, SendOutcome } from "../../../src/domain/provider.js";
import { ABSENT, decline, found, notPerformed, object, unanswered, unknown } from "./charge-fixtures.js";

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
export type SendFault = (typeof SEND_FAULTS)[number];

/** What the bank says when a confirm is executed. */
export const VERDICTS = ["succeeded", "authorized", "pending", "requires_action", "declined"] as const;
export type Verdict = (typeof VERDICTS)[number];

/** What happens to the object without us: the customer at the browser, the bank, somebody at the dashboard, time. */
export const OUTSIDE = ["nothing", "pays", "fails", "cancels", "captures", "lapses"] as const;
export type Outside = (typeof OUTSIDE)[number];

type Stored = { readonly type: "object" | "declined" | "conflict" | "error"; readonly status: ChargeStatus };

/** After so long Stripe may forget a key (docs.stripe.com/api/idempotent_requests). */
const PRUNED_AFTER_MS = 86_400_000;

/**
 * One object at a provider with Stripe's rules: a key's first result is kept and replayed, a refusal before execution
 * keeps nothing, and the object's own state refuses what does not fit it, for ever.
 */
export class ModelProvider {
  status: ChargeStatus | null = null;
  /** How often a confirm was executed with success, or the customer paid: never more than once. */
  timesPaid = 0;
  nowMs = 0;
  readonly #results = new Map<string, { readonly stored: Stored; readonly sinceMs: number }>();
  readonly #late: { readonly call: ChargeCall; readonly key: string; readonly verdict: Verdict }[] = [];

  send(call: ChargeCall, key: string, resend: boolean, fault: SendFault, verdict: Verdict): SendOutcome {
    if (fault === "refused") return resend ? unknown("resend_refused") : notPerformed("unreachable");
    if (fault === "rate_limited")
      return resend ? unknown("resend_refused") : notPerformed("rate_limited", 1_500);
    if (fault === "locked") return unknown("object_locked");
    if (fault === "lost_before") return unknown("timeout");
    if (this.#late.some((one) => one.key === key)) return unknown("key_in_use");
    if (fault === "late") {
      this.#late.push({ call, key, verdict });
      return unknown("timeout");
    }
    const kept = this.#kept(key);
    if (kept !== null) return fault === "none" ? answerOf(kept, true) : unknown("connection_lost");
    const stored = fault === "error_before" ? this.#failure() : this.#execute(call, verdict);
    const shown = fault === "error_after" ? this.#failure() : stored;
    this.#results.set(key, { stored: shown, sinceMs: this.nowMs });
    return fault === "lost_after" ? unknown("connection_lost") : answerOf(shown, false);
  }

  find(answers: boolean): LookupOutcome {
    if (!answers) return unanswered("server_error");
    return this.status === null ? ABSENT : found(this.status);
  }

  get(answers: boolean): LookupOutcome {
    if (!answers) return unanswered("timeout");
    if (this.status === null) throw new Error("asked for an id that was never given out");
    return found(this.status);
  }

  /** Requests that were still under way arrive now. */
  arrive(): void {
    for (const { call, key, verdict } of this.#late.splice(0)) {
      if (this.#kept(key) === null)
        this.#results.set(key, { stored: this.#execute(call, verdict), sinceMs: this.nowMs });
    }
  }

  outside(what: Outside): void {
    if (this.status === null || what === "nothing") return;
    if (this.status === "authorized") {
      if (what === "captures") this.status = "succeeded";
      if (what === "cancels" || what === "lapses") this.status = "canceled";
      return;
    }
    const open = this.status === "requires_action" || this.status === "declined" || this.status === "pending";
    if (!open && !(this.status === "created" && what === "cancels")) return;
    if (what === "pays") this.#pay("succeeded");
    if (what === "fails") this.status = "declined";
    if (what === "cancels" && this.status !== "pending") this.status = "canceled";
  }

  #kept(key: string): Stored | null {
    const kept = this.#results.get(key);
    return kept === undefined || this.nowMs - kept.sinceMs >= PRUNED_AFTER_MS ? null : kept.stored;
  }

  #failure(): Stored {
    return { type: "error", status: this.status ?? "created" };
  }

  #execute(call: ChargeCall, verdict: Verdict): Stored {
    switch (call) {
      case "create":
        this.status ??= "created";
        return { type: "object", status: this.status };
      case "confirm":
        if (this.status !== "created") return { type: "conflict", status: this.status ?? "created" };
        if (verdict === "succeeded" || verdict === "authorized") this.#pay(verdict);
        this.status = verdict;
        return { type: verdict === "declined" ? "declined" : "object", status: verdict };
      case "fence":
        if (this.status === "succeeded" || this.status === "pending" || this.status === "canceled") {
          return { type: "conflict", status: this.status };
        }
        this.status = "canceled";
        return { type: "object", status: "canceled" };
    }
  }

  #pay(status: "succeeded" | "authorized"): void {
    this.status = status;
    this.timesPaid += 1;
  }
}

function answerOf(stored: Stored, replayed: boolean): SendOutcome {
  switch (stored.type) {
    case "object":
      return object(stored.status, {}, replayed);
    case "declined":
      return decline(replayed);
    case "conflict":
      return unknown("state_conflict", replayed);
    case "error":
      return replayed ? unknown("stored_error", true) : unknown("server_error");
  }
}
