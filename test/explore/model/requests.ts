import type { Ref } from "../refs.js";
import type { Context } from "./context.js";
import type { Request } from "./request.js";
import { may } from "./scenario.js";
import { execute, isSend, mayBePruned, savedAnswer } from "./stripe.js";
import type { Reply, Stripe, Way } from "./stripe-objects.js";
import { sorted, type World } from "./world.js";

/** Requests under way: what they may come to at Stripe, and what is left of them when nobody waits any more. */

interface CostingWay {
  readonly way: Way;
  readonly cost: 0 | 1;
}

const ANSWERED: CostingWay = { way: { type: "as_asked", answer: null, pruned: false }, cost: 0 };
const LAGGING: CostingWay = { way: { type: "lagging_list", answer: null, pruned: false }, cost: 1 };

/** In which ways the request may go now. `heard`: somebody waits for the answer, so a refusal is of interest, too. */
export function waysOf(
  context: Context,
  world: World,
  ref: Ref<Request>,
  heard: boolean,
): readonly CostingWay[] {
  const { value: request } = ref;
  if (!isSend(request.call)) {
    const isList = request.call === "find" || request.call === "find_refund";
    return isList && may(context, world, "lagging_list") ? [ANSWERED, LAGGING] : [ANSWERED];
  }
  const saved = savedAnswer(world.stripe.value, request);
  if (saved !== null) {
    const prunable = mayBePruned(saved, context.atMs(world.moment));
    return [ANSWERED, ...(prunable ? executions(context, world, request, true) : [])];
  }
  const ways = [...executions(context, world, request, false), ...serverErrors(context, world, request)];
  return heard ? [...ways, ...refusals(context, world, ref)] : ways;
}

function executions({ scenario }: Context, world: World, request: Request, pruned: boolean): CostingWay[] {
  return answersTo(scenario, request).flatMap((answer): CostingWay[] => {
    // A decline that is none is a fault of the provider's.
    const cost = answer === "misleads" ? 1 : 0;
    return cost > world.faults ? [] : [{ way: { type: "as_asked", answer, pruned }, cost }];
  });
}

function serverErrors(context: Context, world: World, request: Request): CostingWay[] {
  if (!may(context, world, "server_error")) return [];
  const after = answersTo(context.scenario, request).filter((answer) => answer !== "misleads");
  return [
    { way: { type: "error_before_effect", answer: null, pruned: false }, cost: 1 },
    ...after.map(
      (answer): CostingWay => ({
        way: { type: "error_after_effect", answer, pruned: false },
        cost: 1,
      }),
    ),
  ];
}

/** Whom Stripe asks about the request. */
function answersTo({ card, bank }: Context["scenario"], { call }: Request): readonly Way["answer"][] {
  if (call === "confirm") return card;
  return call === "refund" ? bank : [null];
}

function refusals(context: Context, world: World, { value: request, id }: Ref<Request>): CostingWay[] {
  const others = world.flying.filter((one) => one.id !== id && one.value.account === request.account);
  const sameKey = others.some(({ value }) => value.key === request.key);
  const sameObject = others.some(({ value }) => value.target !== null && value.target === request.target);
  const refusal = (type: Way["type"], cost: 0 | 1): CostingWay => ({
    way: { type, answer: null, pruned: false },
    cost,
  });
  return [
    ...(may(context, world, "rate_limit") ? [refusal("rate_limited", 1)] : []),
    ...(sameKey ? [refusal("key_in_use", 0)] : []),
    ...(sameObject ? [refusal("object_locked", 0)] : []),
  ];
}

export function executed(
  context: Context,
  world: World,
  request: Ref<Request>,
  way: Way,
): { readonly stripe: Ref<Stripe>; readonly reply: Ref<Reply> } {
  const how = `${way.type} ${way.answer ?? ""} ${way.pruned}`;
  return context.memos.executed.get(`${world.stripe.id} ${request.id} ${world.moment} ${how}`, () => {
    const done = execute(world.stripe.value, request.value, way, context.atMs(world.moment));
    return { stripe: context.refs.stripe.of(done.stripe), reply: context.refs.replies.of(done.reply) };
  });
}

/** Long past every deadline, and longer than a request is under way. */
export function isTooOld(context: Context, { moment }: World, { value: request }: Ref<Request>): boolean {
  return context.atMs(moment) - request.sentAtMs >= context.scenario.longestFlightMs;
}

/**
 * With a request that nobody waits for any more. A question leaves nothing behind, and neither does a send that Stripe
 * has the answer to: that is kept for longer than the request can be under way.
 */
export function withFlying(context: Context, world: World, request: Ref<Request>): World["flying"] {
  const isDone =
    !isSend(request.value.call) ||
    isTooOld(context, world, request) ||
    savedAnswer(world.stripe.value, request.value) !== null;
  return isDone ? world.flying : sorted([...world.flying, request]);
}
