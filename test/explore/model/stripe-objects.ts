/** A PaymentIntent (docs.stripe.com/payments/paymentintents/lifecycle). */
export interface Intent {
  readonly id: string;
  readonly account: string;
  readonly createdAtMs: number;
  readonly status:
    | "requires_payment_method"
    | "requires_confirmation"
    | "requires_action"
    | "processing"
    | "requires_capture"
    | "succeeded"
    | "canceled";
  readonly amount: number;
  readonly currency: string;
  readonly captureMethod: string;
  readonly received: number;
  readonly capturable: number;
  /** `last_payment_error` is set. */
  readonly failed: boolean;
  readonly cancellationReason: string | null;
  readonly metadata: Readonly<Record<string, string>>;
  /** How often money was taken or held through it: at most once, says Stripe. */
  readonly charges: number;
}

export interface StripeRefund {
  readonly id: string;
  readonly account: string;
  readonly intentId: string;
  readonly amount: number;
  readonly currency: string;
  readonly status: "pending" | "succeeded" | "failed";
  readonly metadata: Readonly<Record<string, string>>;
}

/** A dispute: who paid wants the money back from the bank (docs.stripe.com/disputes/how-disputes-work). */
export interface StripeDispute {
  readonly id: string;
  readonly intentId: string;
  readonly amount: number;
  readonly status: "needs_response" | "won" | "lost";
  /** Funds that were withdrawn (negative) or given back, each with the fee that was taken for it, or given back. */
  readonly movements: readonly { readonly id: string; readonly amount: number; readonly fee: number }[];
}

/** What Stripe sends back. `body`: an object, or a list of them. */
export interface Reply {
  readonly status: number;
  readonly replayed: boolean;
  readonly error: {
    readonly type: string;
    readonly code: string | null;
    readonly declineCode: string | null;
    readonly param: string | null;
  } | null;
  readonly body: Intent | StripeRefund | readonly (Intent | StripeRefund)[] | null;
}

/** All that Stripe knows. */
export interface Stripe {
  readonly intents: readonly Intent[];
  readonly refunds: readonly StripeRefund[];
  readonly disputes: readonly StripeDispute[];
  /** In the order of their names, so that the same answers are the same state. */
  readonly saved: readonly SavedAnswer[];
}

/** The first result of a key: status and body, saved once the execution has begun (api/idempotent_requests). */
export interface SavedAnswer {
  readonly account: string;
  readonly key: string;
  /** What the key was used for: other parameters or another endpoint are refused. */
  readonly request: string;
  readonly savedAtMs: number;
  readonly reply: Reply;
}

export const EMPTY_STRIPE: Stripe = { intents: [], refunds: [], disputes: [], saved: [] };

/** How one request goes at Stripe. */
export interface Way {
  readonly type:
    | "as_asked"
    /** A 500 that is saved under the key; with or without the effect. */
    | "error_after_effect"
    | "error_before_effect"
    /** 429, before the idempotency layer. */
    | "rate_limited"
    /** 409: another request with this key is still running. */
    | "key_in_use"
    /** 429 of another kind: another request holds the object. */
    | "object_locked"
    /** A list that does not show what it should: more than Stripe's documentation allows. */
    | "lagging_list";
  /** What the card, or the refund's bank, says. Null where nobody is asked. */
  readonly answer: Answer | null;
  /** The key's record is old enough to be gone, and is. */
  readonly pruned: boolean;
}

export const CARD_ANSWERS = ["pays", "declines", "asks", "pends", "misleads"] as const;
export const BANK_ANSWERS = ["refunds", "refund_pends"] as const;
export type Answer = (typeof CARD_ANSWERS)[number] | (typeof BANK_ANSWERS)[number];
