import type { Change, ChargeView } from "../../../src/domain/charge-change.js";
import type { AccountView } from "../../../src/domain/charge-steps.js";
import type {
  LookupOutcome,
  RefundLookupOutcome,
  RefundSendOutcome,
  SendOutcome,
} from "../../../src/domain/provider.js";
import type { Deps } from "../../../src/operations/deps.js";
import type { AdvanceRow } from "../../../src/store/advance.js";
import { dateAt, textAt } from "./clock.js";
import type { Context } from "./context.js";
import type { Decided, First, Known, Occasion, Reading } from "./decided.js";
import { brokenBy } from "./invariants.js";
import type { Request } from "./request.js";
import type { Tables } from "./rows.js";
import { isKeptBack, requestOf } from "./send.js";
import { readAttempt, readPayment, readRefund } from "./store.js";
import { isSend } from "./stripe.js";
import { isRecovering, type World } from "./world.js";

/** The decisions that src/operations/run-attempt.ts asks for, made by the shipped code from rows of the model. */

/** `at`: the attempt's place. */
export function readingOf(tables: Tables, at: number): Reading {
  const attempt = tables.attempts[at];
  const payment = tables.payments.find(({ value }) => value.id === attempt?.value.payment_id);
  if (attempt === undefined || payment === undefined) throw new Error(`there is no attempt ${at}`);
  const refund = tables.refunds.find(({ value }) => value.id === attempt.value.refund_id) ?? null;
  return { attempt, payment, refund };
}

/** A worker that has not looked is told by the mark of its send, and looks. */
export function knowsThatItRecovers({ rules }: Context, world: World): boolean {
  return isRecovering(world) && rules.marksOnlyInPlace;
}

export function viewOf(context: Context, known: Known, moment: number): ChargeView {
  const { attempt, payment, refund, earlierRuns, recovering } = known;
  return {
    attempt: readAttempt(context, attempt),
    payment: readPayment(context, payment, attempt),
    refund: readRefund(context, refund),
    now: dateAt(context.atMs(moment)),
    policy: context.policy,
    earlierRuns,
    recovering,
  };
}

export function firstStepOf(
  context: Context,
  known: Known,
  account: string | null,
  markedNow: boolean,
  moment: number,
): First {
  const key = `${keyOf(known, moment)} ${account ?? ""} ${markedNow}`;
  return context.memos.first.get(key, () => {
    const view = viewOf(context, known, moment);
    const first = context.shipped.decideFirst(view, accountView(account), markedNow);
    if (!("type" in first)) return { type: "commits", change: context.refs.changes.of(first) };
    const request = requestOf(context, view, first, account, moment);
    if (request === null) throw new Error("a claim began with nothing to do");
    return { type: "calls", request };
  });
}

/** What the shipped code makes of the occasion. */
export function decide(context: Context, known: Known, occasion: Occasion, moment: number): Decided {
  const key = `${keyOf(known, moment)} ${keyOfOccasion(occasion)}`;
  return context.memos.decided.get(key, () => {
    try {
      return decideAnew(context, known, occasion, moment);
    } catch (error) {
      const fault = `the worker's decision threw: ${String(error)}`;
      return { write: null, request: null, isLate: false, isKeptBack: false, fault };
    }
  });
}

function decideAnew(context: Context, known: Known, occasion: Occasion, moment: number): Decided {
  const view = viewOf(context, known, moment);
  const change = changeFor(context, view, occasion);
  const row = rowOf(context, view, change);
  const { attempt, payment, refund } = context.shipped.applyChange(view, change);
  const held: ChargeView = { ...view, attempt, payment, refund };
  const account = occasion.type === "hears" ? occasion.request.value.account : occasion.account;
  const { then } = change;
  return {
    write: context.refs.writes.of({ ...row, at: textAt(context.atMs(moment)) }),
    request: requestOf(context, held, then, account, moment),
    isLate: then.type === "send" && isTooLate(context, held, then.call),
    isKeptBack: known.recovering && then.type === "send" && isKeptBack(context, then.call),
    fault: brokenBy(view, row),
  };
}

function changeFor({ shipped }: Context, view: ChargeView, occasion: Occasion): Change {
  switch (occasion.type) {
    case "begins": {
      const again = shipped.decideFirst(view, accountView(occasion.account), occasion.markedNow);
      return "type" in again ? occasion.change.value : again;
    }
    case "is_late":
      return view.attempt.kind === "charge"
        ? shipped.leftUnknown(view, "get")
        : shipped.effectLeftUnknown(view);
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
export function isTooLate({ shipped, rules }: Context, view: ChargeView, call: Request["call"]): boolean {
  if (!rules.lateCallsAreNotMade || !isSend(call)) return false;
  if (view.attempt.kind !== "charge") return shipped.effectIsLate(view);
  return call === "confirm" && shipped.budgetIsOver(view);
}

function accountView(account: string | null): AccountView {
  if (account === null) return { type: "unknown", reason: "unreachable" };
  return { type: "known", accountId: account, livemode: false };
}

/** The row that `recordOutcome` hands to the store before it waits for anything: it is there when the call returns. */
function rowOf({ shipped }: Context, view: ChargeView, change: Change): AdvanceRow {
  const rows: AdvanceRow[] = [];
  const advances = {
    add: (row: AdvanceRow) => {
      rows.push(row);
      return Promise.resolve(null);
    },
  };
  const deps = { advances, settings: { attemptLeaseMs: 1, retentionMs: 1 } } as unknown as Deps;
  // Where it throws, applyChange has thrown the same before, or there is no row.
  shipped.recordOutcome(deps, view, change, { sentAt: null }).catch(() => undefined);
  const [row] = rows;
  if (row === undefined) {
    shipped.applyChange(view, change);
    throw new Error("recordOutcome wrote nothing");
  }
  return withoutIds(row);
}

/** Without ids that are new each time, and what no decision reads. */
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

function keyOf({ attempt, payment, refund, earlierRuns, recovering }: Known, moment: number): string {
  return `${attempt.id} ${payment.id} ${refund?.id ?? ""} ${earlierRuns} ${recovering} ${moment}`;
}

function keyOfOccasion(occasion: Occasion): string {
  switch (occasion.type) {
    case "begins":
      return `begins ${occasion.markedNow} ${occasion.change.id} ${occasion.account ?? ""}`;
    case "is_late":
      return `is_late ${occasion.account}`;
    case "hears":
      return `hears ${occasion.request.id} ${occasion.outcome.id}`;
  }
}
