import type { AnyDocument } from "../support/api-client.js";
import type { Caller } from "./caller.js";

/** What merchants do, each step under a key of its own; which one is drawn by weight. */

const VISA = "pm_card_visa";
const LEAST_AMOUNT = 500;
const MOST_AMOUNT = 25_000;
const PAY = "/v1/payments";

const WEIGHTS = {
  pay: 30,
  payAndRefund: 25,
  holdAndCapture: 16,
  holdAndCancel: 8,
  hold: 3,
  captureAndCancelAtOnce: 4,
  decline: 8,
  leaveCustomerWaiting: 4,
  sameKeyTwice: 8,
  sameOrderTwice: 8,
} as const;
type StoryName = keyof typeof WEIGHTS;

/** One story from its beginning to its end; ends early where the caller gave up or a person must decide. */
export async function tellStory(caller: Caller): Promise<void> {
  await STORIES[caller.random.weighted<StoryName>(WEIGHTS)](caller);
}

const STORIES: Readonly<Record<StoryName, (caller: Caller) => Promise<unknown>>> = {
  pay: (caller) => pay(caller, VISA),

  payAndRefund: async (caller) => {
    const { random } = caller;
    const payment = await pay(caller, random.chance(0.15) ? "pm_card_pendingRefund" : VISA);
    if (payment !== null) await refundSome(caller, payment);
  },

  holdAndCapture: async (caller) => {
    const payment = await pay(caller, VISA, { capture_method: "manual" });
    if (payment === null) return;
    const { random } = caller;
    const part = random.whole(LEAST_AMOUNT, payment.amount ?? LEAST_AMOUNT);
    const body = random.chance(0.5) ? {} : { amount: part };
    const captured = await caller.ask(`${PAY}/${payment.id}/capture`, body, ["200 succeeded"]);
    if (captured !== null && random.chance(0.3)) await refundSome(caller, captured);
  },

  holdAndCancel: async (caller) => {
    const payment = await pay(caller, VISA, { capture_method: "manual" });
    if (payment !== null) await caller.ask(`${PAY}/${payment.id}/cancel`, {}, ["200 canceled"]);
  },

  hold: (caller) => pay(caller, VISA, { capture_method: "manual" }),

  captureAndCancelAtOnce: async (caller) => {
    const payment = await pay(caller, VISA, { capture_method: "manual" });
    if (payment === null) return;
    const path = `${PAY}/${payment.id}`;
    await Promise.all([
      caller.ask(`${path}/capture`, {}, ["200 succeeded", "409 invalid_state"]),
      caller.ask(`${path}/cancel`, {}, ["200 canceled", "409 invalid_state"]),
    ]);
  },

  decline: (caller) =>
    caller.ask(PAY, bodyOf(caller, "pm_card_visa_chargeDeclined"), ["402 payment_declined"]),

  leaveCustomerWaiting: (caller) =>
    caller.ask(
      PAY,
      { ...bodyOf(caller, "pm_card_authenticationRequired"), return_url: "https://shop.example/back" },
      ["201 requires_action"],
    ),

  sameKeyTwice: async (caller) => {
    const [key, body] = [caller.newKey(), { ...bodyOf(caller, VISA), merchant_order_id: caller.newKey() }];
    await Promise.all([1, 2].map(() => caller.ask(PAY, body, ["201 succeeded"], key)));
  },

  sameOrderTwice: async (caller) => {
    const body = { ...bodyOf(caller, VISA), merchant_order_id: caller.newKey() };
    const ask = () => caller.ask(PAY, body, ["201 succeeded", "409 merchant_order_id_taken"]);
    await Promise.all([ask(), ask()]);
  },
};

function bodyOf({ random }: Caller, card: string) {
  return { amount: random.whole(LEAST_AMOUNT, MOST_AMOUNT), currency: "usd", payment_method: card };
}

function pay(caller: Caller, card: string, more: { capture_method?: string } = {}) {
  const order = caller.random.chance(0.4) ? { merchant_order_id: caller.newKey() } : {};
  const wanted = more.capture_method === undefined ? "201 succeeded" : "201 authorized";
  return caller.ask(PAY, { ...bodyOf(caller, card), ...order, ...more }, [wanted]);
}

/** Several parts, some at once; now and then more than is left, which is refused. */
async function refundSome(caller: Caller, payment: AnyDocument): Promise<void> {
  const { random } = caller;
  const path = `${PAY}/${payment.id}/refunds`;
  const captured = payment.amount_captured ?? 0;
  const parts = Array.from({ length: random.whole(1, 3) }, () => random.whole(1, Math.floor(captured / 4)));
  const ask = (amount: number) => caller.ask(path, { amount }, ["201 succeeded"]);
  if (random.chance(0.4)) await Promise.all(parts.map(ask));
  else for (const part of parts) await ask(part);
  if (random.chance(0.2)) await caller.ask(path, { amount: captured }, ["422 amount_too_large"]);
}
