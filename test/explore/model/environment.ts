import type { AttemptReference } from "../../../src/domain/provider-event.js";
import { ATTEMPT_METADATA_KEY, TENANT_METADATA_KEY } from "../../../src/providers/stripe/outcome.js";
import type { Ref } from "../refs.js";
import { accepts } from "./accept.js";
import { agedTo } from "./aging.js";
import { ACCEPTED, sinceStart } from "./clock.js";
import type { Context } from "./context.js";
import { readingOf, viewOf } from "./decide.js";
import {
  disputes,
  OUTSIDE_AMOUNT,
  readsDispute,
  refundedAtDashboard,
  tellsOfRefund,
  writesOfDisputes,
} from "./outside.js";
import { markedOpen } from "./recovery.js";
import { executed, waysOf, withFlying } from "./requests.js";
import type { AttemptRow, Tables } from "./rows.js";
import { may } from "./scenario.js";
import { emptyTables } from "./start.js";
import type { To } from "./step.js";
import { instruct, nudge } from "./store.js";
import { capture, paid, withIntent } from "./stripe-calls.js";
import type { Intent, Stripe } from "./stripe-objects.js";
import { HELD_MS } from "./wire.js";
import { nameOf, SAID } from "./words.js";
import type { World } from "./world.js";

type Actor = (context: Context, world: World, to: To) => void;

/** Everybody but the workers, and time. Each may act at any time, in any order. */
export const ENVIRONMENT: readonly Actor[] = [
  clients,
  requestsUnderWay,
  webhooks,
  customers,
  banks,
  dashboard,
  disputes,
  writesOfDisputes,
  lapses,
  people,
  restores,
];

/** A client sends a request, and again whenever it likes. */
function clients(context: Context, world: World, to: To): void {
  for (const at of context.scenario.requests.keys()) accepts(context, world, at, to);
}

/** What nobody waits for any more is executed after all. */
function requestsUnderWay(context: Context, world: World, to: To): void {
  for (const [at, request] of world.flying.entries()) {
    if (world.flying.indexOf(request) !== at) continue;
    const flying = world.flying.filter((_, place) => place !== at);
    for (const { way, cost } of waysOf(context, world, request, false)) {
      const { stripe } = executed(context, world, request, way);
      if (stripe === world.stripe) continue;
      const said = way.answer === null ? "" : `: ${SAID[way.answer]}`;
      const says = () => `a ${request.value.call} that was still under way is executed${said}`;
      to({ ...world, flying, stripe, faults: world.faults - cost }, says);
    }
  }
}

/** Stripe tells of each object as often as it likes, in any order. All that an event does is to make an attempt due. */
function webhooks(context: Context, world: World, to: To): void {
  const { judgeCharge, judgeRefund } = context.shipped;
  const { stripe, tables } = world;
  for (const intent of stripe.value.intents) {
    const owner = reference(
      tables,
      ({ value }) => value.kind === "charge" && value.provider_payment_id === intent.id,
    );
    const subject = { type: "charge", objectId: intent.id, ...marks(intent) } as const;
    const verdict = judgeCharge(subject, false, owner, owner === null ? marked(tables, intent) : null);
    tells(context, world, verdict, to);
  }
  for (const refund of stripe.value.refunds) {
    const owner = reference(
      tables,
      ({ value }) => value.kind === "charge" && value.provider_payment_id === refund.intentId,
    );
    const verdict = judgeRefund(marks(refund), false, owner, owner === null ? null : marked(tables, refund));
    if (verdict.type === "outside") tellsOfRefund(context, world, refund, to);
    else tells(context, world, verdict, to);
  }
  for (const dispute of stripe.value.disputes) readsDispute(context, world, dispute, to);
}

function tells(
  context: Context,
  world: World,
  verdict: ReturnType<Context["shipped"]["judgeCharge"]>,
  to: To,
): void {
  if (verdict.type !== "nudge") return;
  const at = world.tables.attempts.findIndex(({ value }) => value.id === verdict.attempt.id);
  const { value: row } = world.tables.attempts[at]!;
  // Under a lease the news waits for its end: an event that comes then does the same. So does none to what is due.
  if (row.lease === "live" || row.due) return;
  const tables = nudge(context, world.tables, at);
  to({ ...world, tables }, () => `a webhook tells that there is news of ${nameOf(world.tables, at)}`);
}

function marks({ metadata }: { readonly metadata: Readonly<Record<string, string>> }) {
  return {
    attemptId: metadata[ATTEMPT_METADATA_KEY] ?? null,
    tenantId: metadata[TENANT_METADATA_KEY] ?? null,
  };
}

function marked(tables: Tables, object: { readonly metadata: Readonly<Record<string, string>> }) {
  const { attemptId } = marks(object);
  return reference(tables, ({ value }) => value.id === attemptId);
}

function reference(tables: Tables, fits: (row: Ref<AttemptRow>) => boolean): AttemptReference | null {
  const row = tables.attempts.find(fits)?.value;
  if (row === undefined) return null;
  return {
    tenantId: row.tenant_id,
    id: row.id,
    paymentId: row.payment_id,
    kind: row.kind,
    livemode: row.livemode,
    objectId: row.provider_payment_id,
  };
}

function withStripe(context: Context, world: World, stripe: Stripe): World {
  return { ...world, stripe: context.refs.stripe.of(stripe) };
}

/** Whoever was asked to act does, or fails; whoever holds the client secret of a declined object pays it otherwise. */
function customers(context: Context, world: World, to: To): void {
  if (!context.scenario.customer) return;
  const stripe = world.stripe.value;
  for (const intent of stripe.intents) {
    const declined = intent.status === "requires_payment_method" && intent.failed;
    if (intent.status !== "requires_action" && !declined) continue;
    const pays = withStripe(context, world, withIntent(stripe, paid(intent)));
    to(pays, () => `the customer pays ${intent.id}${declined ? " with another card" : ""}`);
    if (declined) continue;
    const fails: Intent = { ...intent, status: "requires_payment_method", failed: true };
    to(withStripe(context, world, withIntent(stripe, fails)), () => `the customer fails to pay ${intent.id}`);
  }
}

/** What is on its way arrives, or comes back; a refund may come back even later. */
function banks(context: Context, world: World, to: To): void {
  const stripe = world.stripe.value;
  for (const intent of stripe.intents) {
    if (intent.status !== "processing") continue;
    to(withStripe(context, world, withIntent(stripe, paid(intent))), () => `the bank pays ${intent.id}`);
    const fails: Intent = { ...intent, status: "requires_payment_method", failed: true };
    to(withStripe(context, world, withIntent(stripe, fails)), () => `the bank declines ${intent.id}`);
  }
  for (const refund of stripe.refunds) {
    for (const status of ["succeeded", "failed"] as const) {
      const follows = refund.status === "pending" || (refund.status === "succeeded" && status === "failed");
      if (!follows || !context.scenario.bank.includes("refund_pends")) continue;
      const refunds = stripe.refunds.map((one) => (one.id === refund.id ? { ...one, status } : one));
      to(
        withStripe(context, world, { ...stripe, refunds }),
        () => `the bank says that ${refund.id} has ${status}`,
      );
    }
  }
}

/** Somebody acts at Stripe's dashboard, each once. */
function dashboard(context: Context, world: World, to: To): void {
  const stripe = world.stripe.value;
  for (const [at, act] of context.scenario.dashboard.entries()) {
    if ((world.done & (1 << at)) !== 0) continue;
    for (const intent of stripe.intents) {
      const done = world.done | (1 << at);
      if (act === "refund") {
        const refunded = refundedAtDashboard(stripe, intent);
        if (refunded === null) continue;
        const after = { ...withStripe(context, world, refunded), done };
        to(after, () => `somebody refunds ${OUTSIDE_AMOUNT} of ${intent.id} at the dashboard`);
        continue;
      }
      const held = intent.status === "requires_capture";
      if (!held && !(act === "cancel" && intent.status === "requires_action")) continue;
      const changed: Intent =
        act === "capture"
          ? capture(intent, intent.capturable).intent
          : { ...intent, status: "canceled", capturable: 0 };
      to(
        { ...withStripe(context, world, withIntent(stripe, changed)), done },
        () => `somebody ${act}s ${intent.id} at the dashboard`,
      );
    }
  }
}

/** An authorisation that nobody captured ends at the provider. */
function lapses(context: Context, world: World, to: To): void {
  if (context.atMs(world.moment) < ACCEPTED.atMs + HELD_MS) return;
  for (const intent of world.stripe.value.intents) {
    if (intent.status !== "requires_capture") continue;
    const lapsed: Intent = { ...intent, status: "canceled", capturable: 0, cancellationReason: "automatic" };
    to(
      withStripe(context, world, withIntent(world.stripe.value, lapsed)),
      () => `the authorisation ${intent.id} lapses`,
    );
  }
}

/** A person decides an open review, as src/operations/resolve-review.ts allows it, and a worker carries it out. */
function people(context: Context, world: World, to: To): void {
  const { person } = context.scenario;
  if (person === null) return;
  const { tables } = world;
  for (const [paymentAt, { value: side }] of tables.sides.entries()) {
    for (const review of side.reviews) {
      if (review.resolution !== null) continue;
      const at = tables.attempts.findIndex(({ value }) => value.id === review.attemptId);
      const known = { ...readingOf(tables, at), earlierRuns: "harmless", recovering: false } as const;
      const view = viewOf(context, known, world.moment);
      for (const { resolution } of context.shipped.allowedResolutions(view, review.reason)) {
        if (!person.includes(resolution)) continue;
        const { reason } = review;
        const instruction = { reviewId: "rev_1", resolution, providerObjectId: null, reason };
        const next = instruct(context, tables, { at, paymentAt, instruction });
        to({ ...world, tables: next }, () => `a person decides about ${nameOf(tables, at)}: ${resolution}`);
      }
    }
  }
}

/** Requests fly no longer than assumed. */
export function time(context: Context, world: World, to: To): void {
  const next = context.scenario.moments[world.moment + 1];
  if (next === undefined) return;
  const flying = world.flying.filter(
    ({ value }) => next.atMs - value.sentAtMs < context.scenario.longestFlightMs,
  );
  to(agedTo(context, { ...world, flying }, world.moment + 1), () => `time passes: ${next.name}`);
}

/** A backup is put back: what was written since is gone, here and not at Stripe. Nobody works meanwhile. */
function restores(context: Context, world: World, to: To): void {
  const { backup, mostLost, recovers, flightsOutliveRestores } = context.scenario;
  const first = world.tables.attempts[0]?.value;
  if (first === undefined || !may(context, world, "restore") || sinceStart(first.created_at) !== 0) return;
  const kept = backup === "start" ? (context.start.tables ?? emptyTables(context)) : emptyTables(context);
  if (world.tables.attempts.length - kept.attempts.length > mostLost) return;
  const orphans = world.runs.flatMap(({ value: { step } }) => (step.type === "waits" ? [step.request] : []));
  const flying = orphans.reduce(
    (all, one) => withFlying(context, { ...world, flying: all }, one),
    world.flying,
  );
  const lost: World = {
    ...world,
    faults: world.faults - 1,
    runs: [],
    readings: [],
    flying: flightsOutliveRestores ? flying : [],
    doubts: 0,
    tables: recovers ? markedOpen(context, kept, world.moment) : kept,
    recovery: recovers ? "under_way" : "none",
  };
  const isBefore = backup === "nothing" || kept.keys.some((key) => key === null);
  to(lost, () => `a backup from ${isBefore ? "before" : "right after"} the request is put back`);
}
