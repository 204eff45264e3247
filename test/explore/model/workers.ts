import type { Ref } from "../refs.js";
import { OTHER_ACCOUNT, OUR_ACCOUNT } from "./accounts.js";
import {
  commit,
  type Committed,
  firstStepOf,
  isTooLate,
  type Occasion,
  type Read,
  viewOf,
} from "./commit.js";
import type { Context } from "./context.js";
import type { Request } from "./request.js";
import type { Tables } from "./rows.js";
import type { Fault } from "./scenario.js";
import type { To } from "./step.js";
import { advance, claim, endLease } from "./store.js";
import { execute, isSend, mayBePruned, savedAnswer, type Way } from "./stripe.js";
import { brokenBySending, leftAnEnd } from "./invariants.js";
import { type Outcome, outcomeOf } from "./wire.js";
import { type Run, sorted, type World } from "./world.js";

/**
 * The worker loop of src/operations/run-attempt.ts. A call goes out in the same step as the commit before it: one that
 * waits a while is one that lands later. What a commit finds changed is read again in the same step, as the loop there
 * ends: with a write that fits, or with the fence gone.
 */
export function workers(context: Context, world: World, to: To): void {
  const free = world.runs.length < context.scenario.workers;
  if (free) for (const at of world.tables.attempts.keys()) claims(context, world, at, to);
  for (const run of world.runs) {
    goesOn(context, world, run, to);
    if (may(context, world, "death")) dies(context, world, run, to);
  }
}

export function may({ scenario }: Context, world: World, fault: Fault): boolean {
  return world.faults > 0 && scenario.allowed.includes(fault);
}

export function nowOf({ scenario }: Context, world: World): number {
  return scenario.moments[world.moment]?.atMs ?? 0;
}

function claims(context: Context, world: World, at: number, to: To): void {
  takes(context, world, at, OUR_ACCOUNT, "", to);
  const hurt = { ...world, faults: world.faults - 1 };
  if (may(context, world, "account_unknown")) takes(context, hurt, at, null, ", whose account is not known,", to);
  if (may(context, world, "account_changed")) {
    takes(context, hurt, at, OTHER_ACCOUNT, " with another account's credential", to);
  }
}

function takes(context: Context, world: World, at: number, account: string | null, whose: string, to: To): void {
  const claimed = claim(context, world.tables, at, account, world.moment);
  if (claimed === null) return;
  const { tables, markedNow } = claimed;
  const read = readingOf(tables, at);
  const says = () =>
    `a worker${whose} claims ${nameOf(tables, at)}${markedNow ? ", and marks its first call as about to be sent" : ""}`;
  const others = othersAfterClaim(context, world, at);
  const { payment, refund } = read;
  const run: Omit<Run, "step"> = { at, stale: null, payment, refund, account };
  const first = firstStepOf(context, read, account, markedNow, world.moment);
  if (first.type === "commits") {
    const begins: Run = { ...run, step: { type: "begins", markedNow, change: first.change } };
    to(withRun({ ...world, tables, ...others }, context.refs.runs.of(begins)), says);
    return;
  }
  const sent = sends(context, { ...world, tables, ...others }, at, first.request);
  const waits: Run = { ...run, step: { type: "waits", request: first.request } };
  to(withRun(sent.world, context.refs.runs.of(waits)), says, sent.fault);
}

/**
 * A worker whose fence has moved on can write nothing any more, and its next call would fail its lease: where the
 * statements hold, all that is left of it is the request that it has under way.
 */
function othersAfterClaim(context: Context, world: World, at: number): Pick<World, "runs" | "flying"> {
  const { scenario, rules, refs } = context;
  const drops = rules.advanceNamesFence && !scenario.keepsStaleWorkers;
  let { flying } = world;
  const runs: Ref<Run>[] = [];
  for (const run of world.runs) {
    if (run.value.at !== at) runs.push(run);
    else if (drops) flying = withFlying(context, world, flying, run.value);
    else {
      const stale = run.value.stale ?? refs.attempts.of({ ...world.tables.attempts[at]!.value, fence: 0 });
      runs.push(refs.runs.of({ ...run.value, stale }));
    }
  }
  return { runs: sorted(runs), flying };
}

function sends(
  context: Context,
  world: World,
  at: number,
  { value: request }: Ref<Request>,
): { readonly world: World; readonly fault: string | null } {
  if (!isSend(request.call)) return { world, fault: null };
  const doubted = { ...world, doubts: world.doubts | (1 << at) };
  return { world: doubted, fault: brokenBySending(world, at, request.call, nowOf(context, world)) };
}

function goesOn(context: Context, world: World, ref: Ref<Run>, to: To): void {
  const run = ref.value;
  const { step } = run;
  switch (step.type) {
    case "begins": {
      const occasion: Occasion = { ...step, account: run.account };
      commits(context, world, ref, occasion, () => "the worker commits what follows from the row", to);
      return;
    }
    case "is_late":
      findsItLate(context, world, ref, to);
      return;
    case "waits":
      if (!tooOld(context, world, step.request)) lands(context, world, ref, step.request, to);
      // A process that was stopped just before the call.
      if (context.rules.lateCallsAreNotMade && isLateNow(context, world, run, step.request.value)) findsItLate(context, world, ref, to);
      break;
    case "hears": {
      const { request, outcome } = step;
      if (tooOld(context, world, request)) break;
      const says = () => `the worker hears of the ${request.value.call}: ${wordsOf(outcome.value)}`;
      commits(context, world, ref, { type: "hears", request, outcome }, says, to);
    }
  }
  const { request } = step;
  const isOver = tooOld(context, world, request);
  if (isOver) hearsNothing(context, world, ref, request, to);
  else if (may(context, world, "no_answer")) {
    hearsNothing(context, { ...world, faults: world.faults - 1 }, ref, request, to);
  }
}

/** Long past every deadline, and longer than a request is under way. */
function tooOld(context: Context, world: World, { value: request }: Ref<Request>): boolean {
  return nowOf(context, world) - request.sentAtMs >= context.scenario.longestFlightMs;
}

function isLateNow(context: Context, world: World, run: Run, { call }: Request): boolean {
  if (!isSend(call)) return false;
  return isTooLate(context, viewOf(context, readingOf(world.tables, run.at), world.moment), call);
}

function findsItLate(context: Context, world: World, ref: Ref<Run>, to: To): void {
  const { account } = ref.value;
  if (account === null) throw new Error("a worker without an account was about to send");
  const says = () => "the worker finds that it is too late for the call, and does not make it";
  commits(context, world, ref, { type: "is_late", account }, says, to);
}

/** The request is executed now, in each of the ways that it may go. */
function lands(context: Context, world: World, ref: Ref<Run>, request: Ref<Request>, to: To): void {
  for (const { way, cost } of waysOf(context, world, request, true)) {
    const done = executed(context, world, request, way);
    const outcome = context.memos.outcome.later(`${request.id} ${done.reply.id}`, async () =>
      context.refs.outcomes.of(await outcomeOf(context.shipped, request.value, done.reply.value)),
    );
    const run = context.refs.runs.of({ ...ref.value, step: { type: "hears", request, outcome } });
    const next = { ...world, faults: world.faults - cost, stripe: done.stripe };
    to(withRun(next, run, ref), () => `Stripe executes the ${request.value.call}${wordsOfWay(way)}`);
  }
}

export function executed(context: Context, world: World, request: Ref<Request>, way: Way) {
  const key = `${world.stripe.id} ${request.id} ${way.type} ${way.answer ?? ""} ${String(way.pruned)} ${world.moment}`;
  return context.memos.executed.get(key, () => {
    const done = execute(world.stripe.value, request.value, way, nowOf(context, world));
    return { stripe: context.refs.stripe.of(done.stripe), reply: context.refs.replies.of(done.reply) };
  });
}

interface CostingWay {
  readonly way: Way;
  readonly cost: 0 | 1;
}

const ANSWERED: CostingWay = { way: { type: "as_asked", answer: null, pruned: false }, cost: 0 };
const LAGGING: CostingWay = { way: { type: "lagging_list", answer: null, pruned: false }, cost: 1 };

/** `heard`: somebody waits for the answer; else only what changes something at Stripe is of interest. */
export function waysOf(
  context: Context,
  world: World,
  { value: request, id }: Ref<Request>,
  heard: boolean,
): readonly CostingWay[] {
  const { call } = request;
  if (!isSend(call)) {
    const isList = call === "find" || call === "find_refund";
    return isList && may(context, world, "lagging_list") ? [ANSWERED, LAGGING] : [ANSWERED];
  }
  const { scenario } = context;
  const saved = savedAnswer(world.stripe.value, request);
  const ways: CostingWay[] = [];
  const add = (type: Way["type"], answer: Way["answer"], pruned: boolean, cost: 0 | 1) =>
    void ways.push({ way: { type, answer, pruned }, cost });
  const answers = call === "confirm" ? scenario.card : call === "refund" ? scenario.bank : ([null] as const);
  const prunable = saved !== null && mayBePruned(saved, nowOf(context, world));
  if (saved !== null) add("as_asked", null, false, 0);
  if (saved === null || prunable) {
    for (const answer of answers) {
      // A decline that is none is a fault of the provider's.
      if (answer !== "misleads") add("as_asked", answer, saved !== null, 0);
      else if (world.faults > 0) add("as_asked", answer, saved !== null, 1);
    }
  }
  if (saved === null && may(context, world, "server_error")) {
    add("error_before_effect", null, false, 1);
    for (const answer of answers) if (answer !== "misleads") add("error_after_effect", answer, false, 1);
  }
  if (!heard) return ways;
  if (may(context, world, "rate_limit")) add("rate_limited", null, false, 1);
  const runsAlready = world.flying.some(
    (other) => other.id !== id && other.value.key === request.key && other.value.account === request.account,
  );
  if (saved === null && runsAlready) add("key_in_use", null, false, 0);
  return ways;
}

/** The deadline passes: the request may be under way still, or its answer is lost. */
function hearsNothing(context: Context, world: World, ref: Ref<Run>, request: Ref<Request>, to: To): void {
  const outcome = context.memos.outcome.later(`${request.id} nothing`, async () =>
    context.refs.outcomes.of(await outcomeOf(context.shipped, request.value, null)),
  );
  const flying = withFlying(context, world, world.flying, ref.value);
  const under = flying === world.flying ? "the answer is lost" : "the request is still under way";
  const says = () => `the worker hears nothing of the ${request.value.call} before its deadline: ${under}`;
  commits(context, { ...world, flying }, ref, { type: "hears", request, outcome }, says, to);
}

/** A death, or a lease that ends under a slow call: with whoever comes next they are the same. */
function dies(context: Context, world: World, ref: Ref<Run>, to: To): void {
  const { at, stale } = ref.value;
  const row = world.tables.attempts[at]!.value;
  const isHeld = stale === null;
  const tables = isHeld ? endLease(context, world.tables, at) : world.tables;
  const hurt = { ...world, faults: world.faults - 1, tables };
  const flying = withFlying(context, world, world.flying, ref.value);
  const says = () => `the worker on ${nameOf(world.tables, at)} dies`;
  to({ ...hurt, flying, runs: world.runs.filter((run) => run !== ref) }, says);
  if (!context.scenario.keepsStaleWorkers && context.rules.advanceNamesFence) return;
  if (isHeld && row.lease === "live") {
    to(hurt, () => `the lease of the worker on ${nameOf(world.tables, at)} ends under it`);
  }
}

function commits(
  context: Context,
  world: World,
  ref: Ref<Run>,
  occasion: Occasion,
  says: () => string,
  to: To,
): void {
  const run = ref.value;
  if (context.rules.oldLooksAreNotBelieved && isOutdatedLook(world, run, occasion)) {
    asksAgain(context, world, ref, occasion.request, says, to);
    return;
  }
  const written = writes(context, world, run, occasion);
  if (written === null) {
    to({ ...world, runs: world.runs.filter((one) => one !== ref) }, () => `${says()}; its write is refused: the fence has moved on`);
    return;
  }
  const { committed, tables } = written;
  const fault =
    run.stale !== null
      ? "a worker whose fence had moved on has written"
      : (committed.fault ?? leftAnEnd(world, tables, run.at));
  const known = { ...world, tables, doubts: doubtsAfter(world.doubts, run.at, occasion) };
  const { request } = committed;
  if (request === null) {
    to({ ...known, runs: world.runs.filter((one) => one !== ref) }, says, fault);
    return;
  }
  const sent = committed.isLate ? { world: known, fault: null } : sends(context, known, run.at, request);
  const { payment, refund } = readingOf(tables, run.at);
  const next = context.refs.runs.of({ ...run, payment, refund, step: committed.isLate ? { type: "is_late" } : { type: "waits", request } });
  to(withRun(sent.world, next, ref), () => `${says()}; next: ${request.value.call}`, fault ?? sent.fault);
}

/** Of a charge's object, which its captures and cancels write, too: a look may be older than what was written since. */
function isOutdatedLook(world: World, run: Run, occasion: Occasion): occasion is Occasion & { type: "hears" } {
  if (occasion.type !== "hears" || run.stale !== null) return false;
  const { call } = occasion.request.value;
  const isOfCharge = call === "get" || call === "find";
  return isOfCharge && run.payment.value.version !== readingOf(world.tables, run.at).payment.value.version;
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

function writes(
  context: Context,
  world: World,
  run: Run,
  occasion: Occasion,
): { readonly committed: Committed; readonly tables: Tables } | null {
  const present = readingOf(world.tables, run.at);
  // Where it holds the fence, nobody else has written the attempt.
  const attempt = run.stale ?? present.attempt;
  if (run.stale !== null && context.rules.lookNamesFence && run.payment !== present.payment) return null;
  // What was read before somebody else wrote is decided on first, and refused by the payment's version.
  const outdated = run.payment === present.payment ? null : decided(context, world, { ...present, attempt, payment: run.payment }, occasion);
  if (outdated?.write === null) return { committed: outdated, tables: world.tables };
  const committed = decided(context, world, { ...present, attempt }, occasion);
  if (committed.write === null) return { committed, tables: world.tables };
  const tables = advance(context, world.tables, committed.write, world.moment);
  return tables === null ? null : { committed, tables };
}

function decided(context: Context, world: World, read: Read, occasion: Occasion): Committed {
  const key = `${aboutOf(occasion)} ${read.attempt.id} ${read.payment.id} ${read.refund?.id ?? ""} ${world.moment}`;
  return context.memos.committed.get(key, () => commit(context, read, occasion, world.moment));
}

function aboutOf(occasion: Occasion): string {
  switch (occasion.type) {
    case "begins":
      return `begins ${String(occasion.markedNow)} ${occasion.change.id} ${occasion.account ?? ""}`;
    case "is_late":
      return `is_late ${occasion.account}`;
    case "hears":
      return `hears ${occasion.request.id} ${occasion.outcome.id}`;
  }
}

/** An answer that tells, or an answered question, ends the doubt about what was sent before. */
function doubtsAfter(doubts: number, at: number, occasion: Occasion): number {
  if (occasion.type !== "hears") return doubts;
  return tells(occasion.outcome.value) ? doubts & ~(1 << at) : doubts;
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

export function readingOf(tables: Tables, at: number) {
  const attempt = tables.attempts[at]!;
  const payment = tables.payments.find(({ value }) => value.id === attempt.value.payment_id)!;
  const refund = tables.refunds.find(({ value }) => value.id === attempt.value.refund_id) ?? null;
  return { attempt, payment, refund };
}

function withRun(world: World, run: Ref<Run>, instead?: Ref<Run>): World {
  const others = instead === undefined ? world.runs : without(world.runs, instead);
  return { ...world, runs: sorted([...others, run]) };
}

function without<T>(refs: readonly T[], one: T): readonly T[] {
  const at = refs.indexOf(one);
  return refs.filter((_, place) => place !== at);
}

/** What of the worker's requests may still be executed once nobody waits for it. */
function withFlying(context: Context, world: World, flying: World["flying"], run: Run): World["flying"] {
  if (run.step.type !== "waits") return flying;
  const { request } = run.step;
  // A question leaves nothing behind, and neither does a send that Stripe has the answer to for longer than it can fly.
  const isDone =
    !isSend(request.value.call) ||
    tooOld(context, world, request) ||
    savedAnswer(world.stripe.value, request.value) !== null;
  return isDone ? flying : sorted([...flying, request]);
}

export function nameOf(tables: Tables, at: number): string {
  const row = tables.attempts[at]!.value;
  return `the ${row.kind} of ${row.payment_id}`;
}

function wordsOfWay({ type, answer, pruned }: Way): string {
  const said = answer === null ? "" : `: it ${answer.replaceAll("_", " ")}`;
  const gone = pruned ? ", whose key it no longer knows" : "";
  switch (type) {
    case "as_asked":
      return `${gone}${said}`;
    case "error_after_effect":
      return `${gone}${said}, and answers with a 500 that it keeps`;
    case "error_before_effect":
      return " not, and answers with a 500 that it keeps";
    case "rate_limited":
      return " not: 429, refused before execution";
    case "lagging_list":
      return ", and shows nothing yet";
    case "key_in_use":
      return " not: 409, a request with this key is still running";
  }
}

function wordsOf(outcome: Outcome): string {
  switch (outcome.type) {
    case "object":
      return `${outcome.replayed ? "replayed, " : ""}${outcome.charge.status}`;
    case "refund":
      return `${outcome.replayed ? "replayed, " : ""}refund ${outcome.refund.status}`;
    case "found":
      return "charge" in outcome ? `found, ${outcome.charge.status}` : `found, refund ${outcome.refund.status}`;
    case "unknown":
    case "unanswered":
    case "not_performed":
      return `${outcome.type.replace("_", " ")} (${outcome.reason})`;
    case "declined":
    case "rejected":
    case "absent":
    case "missing":
      return outcome.type;
  }
}
