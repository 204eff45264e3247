import type { Change, ChargeView, Then } from "../../../src/domain/charge-change.js";
import type { AccountView } from "../../../src/domain/charge-steps.js";
import type {
  LookupOutcome,
  PaymentProvider,
  ProviderCall,
  RefundLookupOutcome,
  RefundSendOutcome,
  SendOutcome,
} from "../../../src/domain/provider.js";
import type { Deps } from "../../../src/operations/deps.js";
import type { AdvanceRow } from "../../../src/store/advance.js";
import type { Ref } from "../refs.js";
import { dateAt, sinceStart, textAt } from "./clock.js";
import { agedMs } from "./aging.js";
import type { Context } from "./context.js";
import type { Request } from "./request.js";
import type { AttemptRow, PaymentRow, RefundRow } from "./rows.js";
import { readAttempt, readPayment, readRefund, type Write } from "./store.js";
import { isSend } from "./stripe.js";
import { brokenBy } from "./invariants.js";
import type { Outcome } from "./wire.js";

/** The decisions of src/operations/run-attempt.ts, made by the shipped code from rows of the model. */

/** What a worker commits, and what it does next. */
export interface Committed {
  /** Null: the shipped code threw. */
  readonly write: Ref<Write> | null;
  /** Null: the lease is given back, or nothing is left to do. */
  readonly request: Ref<Request> | null;
  /** It is too late for the call: it does not go out. */
  readonly isLate: boolean;
  /** What is wrong with it, in words. */
  readonly fault: string | null;
}

/** What a commit answers. */
export type Occasion =
  | {
      readonly type: "begins";
      readonly markedNow: boolean;
      readonly change: Ref<Change>;
      readonly account: string | null;
    }
  | { readonly type: "is_late"; readonly account: string }
  | { readonly type: "hears"; readonly request: Ref<Request>; readonly outcome: Ref<Outcome> };

export interface Read {
  readonly attempt: Ref<AttemptRow>;
  readonly payment: Ref<PaymentRow>;
  readonly refund: Ref<RefundRow> | null;
}

export function viewOf(context: Context, { attempt, payment, refund }: Read, moment: number): ChargeView {
  return {
    attempt: readAttempt(context, attempt),
    payment: readPayment(context, payment, attempt),
    refund: readRefund(context, refund),
    now: dateAt(atOf(context, moment)),
    policy: context.policy,
  };
}

function atOf({ scenario }: Context, moment: number): number {
  return scenario.moments[moment]!.atMs;
}

function accountView(account: string | null): AccountView {
  if (account === null) return { type: "unknown", reason: "unreachable" };
  return { type: "known", accountId: account, livemode: false };
}

/** What a worker does first with what it has claimed. */
export type First =
  | { readonly type: "calls"; readonly request: Ref<Request> }
  | { readonly type: "commits"; readonly change: Ref<Change> };

export function firstStepOf(
  context: Context,
  read: Read,
  account: string | null,
  markedNow: boolean,
  moment: number,
): First {
  const key = `${read.attempt.id} ${read.payment.id} ${read.refund?.id ?? ""} ${account ?? ""} ${String(markedNow)} ${moment}`;
  return context.memos.first.get(key, () => {
    const view = viewOf(context, read, moment);
    const first = context.shipped.decideFirst(view, accountView(account), markedNow);
    if (!("type" in first)) return { type: "commits", change: context.refs.changes.of(first) };
    const request = requestOf(context, view, first, account, moment);
    if (request === null) throw new Error("a claim began with nothing to do");
    return { type: "calls", request };
  });
}

/** What the shipped code makes of the occasion; the rows that it writes are not written here. */
export function commit(context: Context, read: Read, occasion: Occasion, moment: number): Committed {
  try {
    return decideAndWrite(context, read, occasion, moment);
  } catch (error) {
    return { write: null, request: null, isLate: false, fault: `the worker's decision threw: ${String(error)}` };
  }
}

function decideAndWrite(context: Context, read: Read, occasion: Occasion, moment: number): Committed {
  const view = viewOf(context, read, moment);
  const change = decide(context, view, occasion);
  const row = rowOf(context, view, change);
  const applied = context.shipped.applyChange(view, change);
  const held: ChargeView = { ...view, attempt: applied.attempt, payment: applied.payment, refund: applied.refund };
  const account = occasion.type === "hears" ? occasion.request.value.account : occasion.account;
  return {
    write: context.refs.writes.of({ ...row, at: textAt(atOf(context, moment)) }),
    request: requestOf(context, held, change.then, account, moment),
    isLate:
      context.rules.lateCallsAreNotMade &&
      change.then.type === "send" &&
      isTooLate(context, held, change.then.call),
    fault: brokenBy(view, row),
  };
}

function decide({ shipped }: Context, view: ChargeView, occasion: Occasion): Change {
  switch (occasion.type) {
    case "begins": {
      const again = shipped.decideFirst(view, accountView(occasion.account), occasion.markedNow);
      return "type" in again ? occasion.change.value : again;
    }
    case "is_late":
      return view.attempt.kind === "charge" ? shipped.leftUnknown(view, "get") : shipped.effectLeftUnknown(view);
    case "hears": {
      const { call } = occasion.request.value;
      const outcome = occasion.outcome.value;
      return isSend(call)
        ? shipped.decideAfterSend(view, call, outcome as SendOutcome | RefundSendOutcome)
        : shipped.decideAfterLookup(view, call, outcome as LookupOutcome | RefundLookupOutcome);
    }
  }
}

/** As `isTooLate` of run-attempt.ts: however short the way from deciding to sending. */
export function isTooLate({ shipped }: Context, view: ChargeView, call: Request["call"]): boolean {
  if (!isSend(call)) return false;
  return view.attempt.kind === "charge" ? call === "confirm" && shipped.budgetIsOver(view) : shipped.effectIsLate(view);
}

/** The row that `recordOutcome` hands to the store: made before its first wait, so it is there when the call returns. */
function rowOf({ shipped }: Context, view: ChargeView, change: Change): AdvanceRow {
  const rows: AdvanceRow[] = [];
  const deps = {
    advances: {
      add: (row: AdvanceRow) => {
        rows.push(row);
        return Promise.resolve(null);
      },
    },
    settings: { attemptLeaseMs: 1, retentionMs: 1 },
  } as unknown as Deps;
  const failure: { error?: unknown } = {};
  shipped.recordOutcome(deps, view, change, { sentAt: null }).catch((error: unknown) => {
    failure.error = error;
  });
  const [row] = rows;
  if (row === undefined) {
    // Says why: the same function throws that recordOutcome has just called.
    shipped.applyChange(view, change);
    throw new Error("recordOutcome wrote nothing");
  }
  return withoutIds(row);
}

/** Ids that are new each time, and what no decision reads. */
function withoutIds(row: AdvanceRow): AdvanceRow {
  const { event, review, key } = row;
  return {
    ...row,
    timeline: [],
    event: event === null ? null : { ...event, id: "", data: "" },
    review: review === null ? null : { ...review, id: "" },
    key: key === null ? null : { ...key, headers: null, body: null },
    due_in_ms: row.due_in_ms === null ? null : 1,
  };
}

/** What goes out next: made by the shipped code, seen by a provider that only takes it down. */
export function requestOf(
  context: Context,
  view: ChargeView,
  then: Then,
  account: string | null,
  moment: number,
): Ref<Request> | null {
  if (then.type === "wait" || then.type === "end") return null;
  if (account === null) throw new Error("a worker without an account called the provider");
  const recorder = recorderOf(account, agedMs(context, atOf(context, moment), moment, "sent"));
  const { sendCall, askQuestion } = context.shipped;
  const taken: unknown =
    then.type === "send" ? sendCall(recorder, view, then.call) : askQuestion(recorder, view, then.question);
  return context.refs.requests.of(taken as Request);
}

function recorderOf(account: string, nowMs: number): PaymentProvider {
  const blank: Omit<Request, "call"> = {
    account,
    key: null,
    target: null,
    parameters: null,
    resend: false,
    attemptId: null,
    createdFromMs: null,
    sentAtMs: nowMs,
  };
  const send = (
    call: ProviderCall,
    target: string | null,
    parameters: string | null,
    context: { readonly idempotencyKey: string; readonly resend: boolean },
  ): Request => ({
    ...blank,
    call,
    target,
    parameters,
    key: context.idempotencyKey,
    resend: context.resend,
  });
  type Context = Parameters<PaymentProvider["createCharge"]>[1];
  const recorder = {
    createCharge: (parameters: string, context: Context) => send("create", null, parameters, context),
    confirmCharge: (id: string, parameters: string, context: Context) => send("confirm", id, parameters, context),
    cancelCharge: (id: string, context: Context) => send("fence", id, null, context),
    captureCharge: (id: string, parameters: string, context: Context) => send("capture", id, parameters, context),
    voidCharge: (id: string, parameters: string, context: Context) => send("cancel", id, parameters, context),
    createRefund: (parameters: string, context: Context) => send("refund", null, parameters, context),
    getCharge: (target: string): Request => ({ ...blank, call: "get", target }),
    getRefund: (target: string): Request => ({ ...blank, call: "get_refund", target }),
    findCharge: (sought: { attemptId: string; createdFrom: Date }): Request => ({
      ...blank,
      call: "find",
      attemptId: sought.attemptId,
      createdFromMs: sinceStart(sought.createdFrom.toISOString()),
    }),
    findRefund: (sought: { attemptId: string; chargeId: string }): Request => ({
      ...blank,
      call: "find_refund",
      target: sought.chargeId,
      attemptId: sought.attemptId,
    }),
  };
  // sendCall and askQuestion hand on what the method returns: here, what would have gone out.
  return recorder as unknown as PaymentProvider;
}
