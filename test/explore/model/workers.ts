import type { Ref } from "../refs.js";
import { OTHER_ACCOUNT, OUR_ACCOUNT } from "./accounts.js";
import { commits, sends } from "./commit.js";
import type { Context } from "./context.js";
import { firstStepOf, isTooLate, knowsThatItRecovers, readingOf, viewOf } from "./decide.js";
import { earlierRunsOf, hurryEarlierRuns } from "./earlier-runs.js";
import type { Request } from "./request.js";
import { executed, isTooOld, waysOf, withFlying } from "./requests.js";
import { may } from "./scenario.js";
import { isKeptBack, keptBack } from "./send.js";
import type { To } from "./step.js";
import { claim, endLease } from "./store.js";
import { isSend } from "./stripe.js";
import { outcomeOf } from "./wire.js";
import { nameOf, wordsOf, wordsOfWay } from "./words.js";
import { type Run, sorted, type World, withoutRun, withRun } from "./world.js";

/**
 * The workers, in the loop of src/operations/run-attempt.ts. A call goes out in the same step as the commit before it:
 * one that waits a while is one that lands later.
 */
export function workers(context: Context, world: World, to: To): void {
  if (world.runs.length < context.scenario.workers) {
    for (const at of world.tables.attempts.keys()) claims(context, world, at, to);
  }
  for (const run of world.runs) {
    goesOn(context, world, run, to);
    if (may(context, world, "death")) dies(context, world, run, to);
  }
}

function claims(context: Context, world: World, at: number, to: To): void {
  takes(context, world, at, OUR_ACCOUNT, to);
  const hurt = { ...world, faults: world.faults - 1 };
  if (may(context, world, "account_unknown")) takes(context, hurt, at, null, to);
  if (may(context, world, "account_changed")) takes(context, hurt, at, OTHER_ACCOUNT, to);
}

function takes(context: Context, world: World, at: number, account: string | null, to: To): void {
  const claimed = claim(context, world.tables, at, account, world.moment);
  if (claimed === null) return;
  const { markedNow } = claimed;
  const tables = hurryEarlierRuns(context, claimed.tables, at);
  const others = { ...world, tables, ...othersAfterClaim(context, world, at) };
  const reading = readingOf(tables, at);
  const { payment, refund } = reading;
  const earlierRuns = earlierRunsOf(context, tables, at);
  const known = { ...reading, earlierRuns, recovering: knowsThatItRecovers(context, world) };
  const first = firstStepOf(context, known, account, markedNow, world.moment);
  const run: Omit<Run, "step"> = { at, stale: null, payment, refund, account, earlierRuns };
  const says = () => {
    const marked = markedNow ? ", and marks its first call as about to be sent" : "";
    return `a worker${withCredential(account)} claims ${nameOf(tables, at)}${marked}`;
  };
  if (first.type === "commits") {
    const begins: Run = { ...run, step: { type: "begins", markedNow, change: first.change } };
    to(withRun(others, context.refs.runs.of(begins)), says);
    return;
  }
  const { call } = first.request.value;
  if (known.recovering && isSend(call) && isKeptBack(context, call)) {
    const hears = { type: "hears", request: first.request, outcome: keptBack(context, call) } as const;
    to(withRun(others, context.refs.runs.of({ ...run, step: hears })), says);
    return;
  }
  const sent = sends(context, others, at, first.request);
  const waits: Run = { ...run, step: { type: "waits", request: first.request } };
  to(withRun(sent.world, context.refs.runs.of(waits)), says, sent.fault);
}

function withCredential(account: string | null): string {
  if (account === null) return ", whose account is not known,";
  return account === OUR_ACCOUNT ? "" : " with another account's credential";
}

/**
 * A worker whose fence has moved on can write nothing any more, and makes no further call, since its lease is over:
 * while the statements name the fence, all that is left of it is the request that it has under way.
 */
function othersAfterClaim(context: Context, world: World, at: number): Pick<World, "runs" | "flying"> {
  const { scenario, rules, refs } = context;
  const drops = rules.advanceNamesFence && !scenario.keepsStaleWorkers;
  let { flying } = world;
  const runs: Ref<Run>[] = [];
  for (const run of world.runs) {
    const { step, stale } = run.value;
    if (run.value.at !== at) runs.push(run);
    else if (!drops) {
      const held = stale ?? refs.attempts.of({ ...readingOf(world.tables, at).attempt.value, fence: 0 });
      runs.push(refs.runs.of({ ...run.value, stale: held }));
    } else if (step.type === "waits") flying = withFlying(context, { ...world, flying }, step.request);
  }
  return { runs: sorted(runs), flying };
}

function goesOn(context: Context, world: World, ref: Ref<Run>, to: To): void {
  const { step, account } = ref.value;
  switch (step.type) {
    case "begins":
      commits(context, world, ref, { ...step, account }, () => "it commits what follows from the row", to);
      break;
    case "is_late":
      findsItLate(context, world, ref, to);
      break;
    case "waits":
      if (isTooOld(context, world, step.request)) hearsNothing(context, world, ref, step.request, to);
      else waits(context, world, ref, step.request, to);
      break;
    case "hears": {
      const { request, outcome } = step;
      if (isTooOld(context, world, request)) {
        hearsNothing(context, world, ref, request, to);
        break;
      }
      const says = () => `the worker hears of the ${request.value.call}: ${wordsOf(outcome.value)}`;
      commits(context, world, ref, { type: "hears", request, outcome }, says, to);
      mayHearNothing(context, world, ref, request, to);
    }
  }
}

function waits(context: Context, world: World, ref: Ref<Run>, request: Ref<Request>, to: To): void {
  lands(context, world, ref, request, to);
  mayHearNothing(context, world, ref, request, to);
  // The call had not gone out yet: its process was stopped just before.
  const { at, earlierRuns } = ref.value;
  const known = {
    ...readingOf(world.tables, at),
    earlierRuns,
    recovering: knowsThatItRecovers(context, world),
  };
  const view = viewOf(context, known, world.moment);
  if (isTooLate(context, view, request.value.call)) findsItLate(context, world, ref, to);
}

function findsItLate(context: Context, world: World, ref: Ref<Run>, to: To): void {
  const { account } = ref.value;
  if (account === null) throw new Error("a worker without an account was about to send");
  const says = () => "the worker finds that it is too late for the call, and does not make it";
  commits(context, world, ref, { type: "is_late", account }, says, to);
}

/** The request is executed now, in each of the ways that it may go; the answer is on its way back. */
function lands(context: Context, world: World, ref: Ref<Run>, request: Ref<Request>, to: To): void {
  for (const { way, cost } of waysOf(context, world, request, true)) {
    const { stripe, reply } = executed(context, world, request, way);
    const outcome = context.memos.outcome.later(`${request.id} ${reply.id}`, async () =>
      context.refs.outcomes.of(await outcomeOf(context.shipped, request.value, reply.value)),
    );
    const hears = context.refs.runs.of({ ...ref.value, step: { type: "hears", request, outcome } });
    const next = { ...world, faults: world.faults - cost, stripe };
    to(withRun(next, hears, ref), () => `Stripe executes the ${request.value.call}${wordsOfWay(way)}`);
  }
}

function mayHearNothing(context: Context, world: World, ref: Ref<Run>, request: Ref<Request>, to: To): void {
  if (!may(context, world, "no_answer")) return;
  hearsNothing(context, { ...world, faults: world.faults - 1 }, ref, request, to);
}

/** The deadline passes: the request may be under way still, or its answer is lost. */
function hearsNothing(context: Context, world: World, ref: Ref<Run>, request: Ref<Request>, to: To): void {
  const outcome = context.memos.outcome.later(`${request.id} nothing`, async () =>
    context.refs.outcomes.of(await outcomeOf(context.shipped, request.value, null)),
  );
  const isOut = ref.value.step.type === "waits";
  const flying = isOut ? withFlying(context, world, request) : world.flying;
  const why = flying === world.flying ? "the answer is lost" : "the request is still under way";
  const says = () => `the worker hears nothing of the ${request.value.call} before its deadline: ${why}`;
  commits(context, { ...world, flying }, ref, { type: "hears", request, outcome }, says, to);
}

/** A death, or a lease that ends under a slow call: to whoever comes next they look the same. */
function dies(context: Context, world: World, ref: Ref<Run>, to: To): void {
  const { at, stale, step } = ref.value;
  const hurt = { ...world, faults: world.faults - 1 };
  const over = stale === null ? { ...hurt, tables: endLease(context, world.tables, at) } : hurt;
  const flying = step.type === "waits" ? withFlying(context, world, step.request) : world.flying;
  to(withoutRun({ ...over, flying }, ref), () => `the worker on ${nameOf(world.tables, at)} dies`);
  const isFollowed = context.scenario.keepsStaleWorkers || !context.rules.advanceNamesFence;
  if (!isFollowed || stale !== null || over.tables === world.tables) return;
  to(over, () => `the lease of the worker on ${nameOf(world.tables, at)} ends under it`);
}
