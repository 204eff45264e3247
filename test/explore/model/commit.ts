import type { Ref } from "../refs.js";
import type { Context } from "./context.js";
import { decide, knowsThatItRecovers, readingOf } from "./decide.js";
import type { Decided, Occasion } from "./decided.js";
import { brokenBySending, leftAnEnd } from "./invariants.js";
import type { Request } from "./request.js";
import type { Tables } from "./rows.js";
import { keptBack } from "./send.js";
import type { To } from "./step.js";
import { advance } from "./store.js";
import { isSend } from "./stripe.js";
import type { Outcome } from "./wire.js";
import { type Run, type RunStep, type World, withoutRun, withRun } from "./world.js";

/**
 * The worker commits what follows from the occasion, as `commit` of run-attempt.ts: what has changed meanwhile is read
 * again, until the write fits or the fence is gone, which here is one step. Its next call goes out in this step, too.
 */
export function commits(
  context: Context,
  world: World,
  ref: Ref<Run>,
  occasion: Occasion,
  says: () => string,
  to: To,
): void {
  const run = ref.value;
  if (context.rules.oldLooksAreNotBelieved && isOldLook(world, run, occasion)) {
    asksAgain(context, world, ref, occasion.request, says, to);
    return;
  }
  const written = writes(context, world, run, occasion);
  if (written === null) {
    to(withoutRun(world, ref), () => `${says()}; its write is refused: the fence has moved on`);
    return;
  }
  const { decided, tables } = written;
  const known: World = { ...world, tables, doubts: doubtsAfter(world.doubts, run.at, occasion) };
  const fault = faultOf(world, run, decided, tables);
  const { request, isLate } = decided;
  if (request === null) {
    to(withoutRun(known, ref), says, fault);
    return;
  }
  const { payment, refund } = readingOf(tables, run.at);
  const next: Run = { ...run, payment, refund, step: stepWith(context, decided, request) };
  const goesOut = !isLate && !decided.isKeptBack;
  const sent = goesOut ? sends(context, known, run.at, request) : { world: known, fault: null };
  const told = () => `${says()}; next: ${request.value.call}`;
  to(withRun(sent.world, context.refs.runs.of(next), ref), told, fault ?? sent.fault);
}

function stepWith(context: Context, { isLate, isKeptBack }: Decided, request: Ref<Request>): RunStep {
  if (isLate) return { type: "is_late" };
  const { call } = request.value;
  if (!isKeptBack || !isSend(call)) return { type: "waits", request };
  return { type: "hears", request, outcome: keptBack(context, call) };
}

function faultOf(world: World, run: Run, decided: Decided, tables: Tables): string | null {
  if (run.stale !== null) return "a worker whose fence had moved on has written";
  return decided.fault ?? leftAnEnd(world, tables, run.at);
}

/** A call goes out. From here until something tells, its outcome is in doubt. */
export function sends(
  context: Context,
  world: World,
  at: number,
  { value: request }: Ref<Request>,
): { readonly world: World; readonly fault: string | null } {
  if (!isSend(request.call)) return { world, fault: null };
  const fault = brokenBySending(world, at, request.call, context.atMs(world.moment));
  return { world: { ...world, doubts: world.doubts | (1 << at) }, fault };
}

/** Of a charge's object, which its captures and cancels write, too: it may be older than what was written since. */
function isOldLook(world: World, run: Run, occasion: Occasion): occasion is Occasion & { type: "hears" } {
  if (occasion.type !== "hears" || run.stale !== null) return false;
  const { call } = occasion.request.value;
  const { payment } = readingOf(world.tables, run.at);
  return (call === "get" || call === "find") && run.payment.value.version !== payment.value.version;
}

function asksAgain(
  context: Context,
  world: World,
  ref: Ref<Run>,
  request: Ref<Request>,
  says: () => string,
  to: To,
): void {
  const { payment, refund } = readingOf(world.tables, ref.value.at);
  const next = context.refs.runs.of({ ...ref.value, payment, refund, step: { type: "waits", request } });
  to(withRun(world, next, ref), () => `${says()}; the payment was written meanwhile, so it asks again`);
}

/** Null: the fence has moved on. */
function writes(
  context: Context,
  world: World,
  run: Run,
  occasion: Occasion,
): { readonly decided: Decided; readonly tables: Tables } | null {
  const present = readingOf(world.tables, run.at);
  // Where it holds the fence, nobody else has written the attempt.
  const attempt = run.stale ?? present.attempt;
  const { earlierRuns } = run;
  const known = { ...present, attempt, earlierRuns, recovering: knowsThatItRecovers(context, world) };
  const isOutdated = run.payment !== present.payment;
  // The look at what has changed names the fence, too.
  if (run.stale !== null && isOutdated) return null;
  if (isOutdated) {
    // What was read first is decided on first, and refused for the payment's version.
    const first = decide(context, { ...known, payment: run.payment }, occasion, world.moment);
    if (first.write === null) return { decided: first, tables: world.tables };
  }
  const decided = decide(context, known, occasion, world.moment);
  if (decided.write === null) return { decided, tables: world.tables };
  const tables = advance(context, world.tables, decided.write, world.moment);
  return tables === null ? null : { decided, tables };
}

/** An answer that tells, or an answered question, ends the doubt about what was sent before. */
function doubtsAfter(doubts: number, at: number, occasion: Occasion): number {
  return occasion.type === "hears" && tells(occasion.outcome.value) ? doubts & ~(1 << at) : doubts;
}

function tells(outcome: Outcome): boolean {
  switch (outcome.type) {
    case "object":
    case "refund":
    case "declined":
      return !outcome.replayed;
    case "rejected":
    case "not_performed":
    case "found":
    case "absent":
    case "missing":
      return true;
    case "unanswered":
    case "unknown":
      return false;
  }
}
