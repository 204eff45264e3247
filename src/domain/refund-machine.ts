import { setup } from "xstate";

/** What moves a refund: facts about the provider's object, or a finding about our own attempt. */
export type RefundEvent =
  | { type: "SUCCEED" }
  | { type: "FAIL" }
  /** The provider has it and has not decided yet. */
  | { type: "PEND" }
  | { type: "REVIEW" };

export type RefundEventType = RefundEvent["type"];

/**
 * The life of a refund, as data. `succeeded` is left where the bank sends the money back later, `failed` where the
 * provider turns out to have made it after all: fetched facts, both.
 */
export const refundMachine = setup({
  types: { events: {} as RefundEvent },
}).createMachine({
  id: "refund",
  initial: "processing",
  states: {
    processing: { on: { SUCCEED: "succeeded", FAIL: "failed", REVIEW: "needs_review" } },
    needs_review: { on: { SUCCEED: "succeeded", FAIL: "failed", PEND: "processing" } },
    succeeded: { on: { FAIL: "failed" } },
    failed: { on: { SUCCEED: "succeeded" } },
  },
});
