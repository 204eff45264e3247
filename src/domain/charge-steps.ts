import type { Change, ChargeView, Then } from "./charge-change.js";
import { budgetIsOver, provenByRow, resolved, unchanged } from "./charge-change.js";
import { notPerformedByRow, underReview, waiting } from "./charge-decisions.js";
import { EARLIER_RUN_OPEN } from "./earlier-runs.js";

/** Which provider account this worker can speak for. */
export type AccountView =
  | { readonly type: "known"; readonly accountId: string; readonly livemode: boolean }
  | { readonly type: "unknown"; readonly reason: string };

/**
 * What a worker does first with an attempt that it has just claimed. `markedNow`: the claim itself recorded that
 * the create is about to be sent; without it, a state of `creating` or `confirming` was left by a worker that died
 * or lost its lease, and its outcome is unknown.
 */
export function firstStep(view: ChargeView, account: AccountView, markedNow: boolean): Then | Change {
  const { attempt } = view;
  const barred = barredByAccount(view, account);
  if (barred !== null) return barred;
  switch (attempt.state) {
    case "started":
      return waitsForEarlierRun(view)
        ? waiting(view, { reason: EARLIER_RUN_OPEN, note: null })
        : { type: "ask", question: "find" };
    case "creating":
      return markedNow ? { type: "send", call: "create" } : leftUnknown(view, "find");
    case "create_unknown":
      return { type: "ask", question: "find" };
    case "charge_created":
      return budgetIsOver(view) || attempt.unresolved ? { type: "ask", question: "get" } : confirmNext(view);
    case "confirming":
      return leftUnknown(view, "get");
    case "confirm_unknown":
    case "following":
    case "fencing":
      return { type: "ask", question: "get" };
    case "completed":
      return { type: "ask", question: attempt.providerPaymentId === null ? "find" : "get" };
    case "sending":
    case "send_unknown":
      throw new Error(`attempt ${attempt.id} of a charge is in ${attempt.state}`);
  }
}

/** Nothing may be sent for it yet, so nothing is asked: what the earlier run comes to decides. */
export function waitsForEarlierRun(view: ChargeView): boolean {
  return view.earlierRuns === "open" && !budgetIsOver(view);
}

/** How adapters name an account by its credential, where that is all they may know (domain/provider.ts). */
const CREDENTIAL_IDENTITY = "key_";

/** `credential`: only the identity that stands in for an account which its key may not read. */
export function accountDiffers(
  { attempt }: ChargeView,
  account: AccountView & { type: "known" },
): "none" | "credential" | "account" {
  const own = attempt.providerAccount === null || attempt.providerAccount === account.accountId;
  const sameMode = attempt.livemode === account.livemode;
  if (own && sameMode) return "none";
  return sameMode && mayBeSameAccount(attempt.providerAccount, account.accountId) ? "credential" : "account";
}

/** Another account or mode never sends and never asks: its answers would be about somebody else's objects. */
function barredByAccount(view: ChargeView, account: AccountView): Change | Then | null {
  const { attempt } = view;
  if (account.type === "known") {
    const difference = accountDiffers(view, account);
    if (difference === "none") return null;
    if (difference === "credential") {
      const asks = askAboutObject(view);
      if (asks !== null) return asks;
    }
    return underReview(view, "provider_account_changed", null);
  }
  if (provenByRow(view)) return notPerformedByRow(view, account.reason, null);
  const inFlight = attempt.state === "creating" || attempt.state === "confirming";
  if (!inFlight) return waiting(view, { reason: account.reason, note: null });
  const unknown = { unresolved: true, unknownSince: attempt.unknownSince ?? view.now };
  return waiting(view, { reason: account.reason, note: null, events: ["OUTCOME_UNKNOWN"], attempt: unknown });
}

/**
 * An account that its credential may not read is known by the credential alone, so a rotated key looks like another
 * account. The object tells: only its own account answers for a committed id.
 */
function mayBeSameAccount(one: string | null, other: string): boolean {
  return one?.startsWith(CREDENTIAL_IDENTITY) === true || other.startsWith(CREDENTIAL_IDENTITY);
}

/** The question before anything else, where there is an object to ask about. */
function askAboutObject(view: ChargeView): Change | Then | null {
  if (view.attempt.providerPaymentId === null || view.attempt.state === "completed") return null;
  return view.attempt.state === "confirming" ? leftUnknown(view, "get") : { type: "ask", question: "get" };
}

export function leftUnknown(view: ChargeView, question: "find" | "get"): Change {
  return {
    attemptEvents: ["OUTCOME_UNKNOWN"],
    attempt: {
      ...unchanged(view.attempt),
      unresolved: true,
      waitReason: "worker_lost",
      unknownSince: view.attempt.unknownSince ?? view.now,
    },
    paymentEvent: null,
    payment: {},
    reason: "worker_lost",
    review: null,
    note: {
      kind: "send",
      call: question === "find" ? "create" : "confirm",
      outcome: "unknown: worker_lost",
      evidence: null,
    },
    then: { type: "ask", question },
  };
}

/** Every earlier send of the confirm was refused before execution. */
function confirmNext(view: ChargeView): Change {
  return {
    attemptEvents: [],
    attempt: { ...resolved(view.attempt), waits: view.attempt.waits },
    paymentEvent: null,
    payment: {},
    reason: "due",
    review: null,
    note: null,
    then: { type: "send", call: "confirm" },
  };
}
