import { setup } from "xstate";

/** What moves a payment. Each is a fact about the provider's object, or a finding about our own attempt. */
export type PaymentEvent =
  | { type: "SUCCEED" }
  | { type: "AUTHORIZE" }
  | { type: "PEND" }
  | { type: "REQUIRE_ACTION" }
  | { type: "DECLINE" }
  | { type: "REJECT" }
  | { type: "CANCEL" }
  | { type: "NOT_PERFORMED" }
  | { type: "REVIEW" };

export type PaymentEventType = PaymentEvent["type"];

/**
 * The life of a payment, as data: used only through `transition()`, never as a running actor.
 * `failed` and `canceled` are left by one thing alone: a fetched fact that money moved.
 */
export const paymentMachine = setup({
  types: { events: {} as PaymentEvent },
}).createMachine({
  id: "payment",
  initial: "processing",
  states: {
    processing: {
      on: {
        SUCCEED: "succeeded",
        AUTHORIZE: "authorized",
        REQUIRE_ACTION: "requires_action",
        DECLINE: "failed",
        REJECT: "failed",
        NOT_PERFORMED: "failed",
        CANCEL: "canceled",
        REVIEW: "needs_review",
      },
    },
    requires_action: {
      on: {
        SUCCEED: "succeeded",
        AUTHORIZE: "authorized",
        PEND: "processing",
        DECLINE: "failed",
        CANCEL: "canceled",
        REVIEW: "needs_review",
      },
    },
    needs_review: {
      on: {
        SUCCEED: "succeeded",
        AUTHORIZE: "authorized",
        REQUIRE_ACTION: "requires_action",
        PEND: "processing",
        DECLINE: "failed",
        REJECT: "failed",
        NOT_PERFORMED: "failed",
        CANCEL: "canceled",
      },
    },
    // Captured, here or elsewhere; released, or lapsed at the provider.
    authorized: { on: { SUCCEED: "succeeded", CANCEL: "canceled", REVIEW: "needs_review" } },
    succeeded: {},
    failed: { on: { SUCCEED: "succeeded", AUTHORIZE: "authorized", REVIEW: "needs_review" } },
    canceled: { on: { SUCCEED: "succeeded", AUTHORIZE: "authorized", REVIEW: "needs_review" } },
  },
});
