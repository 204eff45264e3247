import { type Memo, pair, type Ref, type Refs } from "../refs.js";
import { alike, sinceStart, textAt } from "./clock.js";
import type { Context } from "./context.js";
import type { AttemptRow, PaymentRow, RefundRow, Tables } from "./rows.js";
import type { Reply, Stripe } from "./stripe-objects.js";
import type { World } from "./world.js";

/** The world at a later moment, with times written alike where nothing tells them apart any more. */
export function agedTo(context: Context, world: World, moment: number): World {
  const { refs, memos } = context;
  const aged = <T>(ref: Ref<T>, memo: Memo<Ref<T>>, all: Refs<T>, age: Age<T>) =>
    memo.get(pair(ref.id, moment), () => all.of(age(context, ref.value, moment)));
  const tables: Tables = {
    ...world.tables,
    attempts: world.tables.attempts.map((ref) => aged(ref, memos.agedAttempt, refs.attempts, agedAttempt)),
    payments: world.tables.payments.map((ref) => aged(ref, memos.agedPayment, refs.payments, agedPayment)),
    refunds: world.tables.refunds.map((ref) => aged(ref, memos.agedRefund, refs.refunds, agedRefund)),
  };
  return { ...world, moment, tables, stripe: aged(world.stripe, memos.agedStripe, refs.stripe, agedStripe) };
}

type Age<T> = (context: Context, value: T, moment: number) => T;

type Ages = keyof Context["ages"];

export function agedMs(context: Context, atMs: number, moment: number, kind: Ages): number {
  return alike(context.scenario.moments, context.atMs(moment), atMs, context.ages[kind]);
}

function agedText(context: Context, text: string, moment: number, kind: Ages): string {
  return textAt(agedMs(context, sinceStart(text), moment, kind));
}

export function agedAttempt(context: Context, row: AttemptRow, moment: number): AttemptRow {
  const aged = (text: string | null, kind: Ages) =>
    text === null ? null : agedText(context, text, moment, kind);
  return {
    ...row,
    created_at: agedText(context, row.created_at, moment, "created"),
    create_first_sent_at: aged(row.create_first_sent_at, "firstSent"),
    confirm_first_sent_at: aged(row.confirm_first_sent_at, "firstSent"),
    fence_first_sent_at: aged(row.fence_first_sent_at, "firstSent"),
    effect_first_sent_at: aged(row.effect_first_sent_at, "firstSent"),
    unknown_since: aged(row.unknown_since, "unknown"),
  };
}

function agedPayment(context: Context, row: PaymentRow, moment: number): PaymentRow {
  return { ...row, created_at: agedText(context, row.created_at, moment, "shown") };
}

function agedRefund(context: Context, row: RefundRow, moment: number): RefundRow {
  return { ...row, created_at: agedText(context, row.created_at, moment, "shown") };
}

function agedStripe(context: Context, stripe: Stripe, moment: number): Stripe {
  const intents = stripe.intents.map((intent) => agedIntent(context, intent, moment));
  const saved = stripe.saved.map((one) => ({
    ...one,
    savedAtMs: agedMs(context, one.savedAtMs, moment, "saved"),
    reply: agedReply(context, one.reply, moment),
  }));
  return { ...stripe, intents, saved };
}

function agedReply(context: Context, reply: Reply, moment: number): Reply {
  const { body } = reply;
  return body === null || !("createdAtMs" in body)
    ? reply
    : { ...reply, body: agedIntent(context, body, moment) };
}

function agedIntent<T extends { readonly createdAtMs: number }>(
  context: Context,
  intent: T,
  moment: number,
): T {
  return { ...intent, createdAtMs: agedMs(context, intent.createdAtMs, moment, "created") };
}
