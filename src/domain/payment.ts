export const PAYMENT_STATUSES = [
  "processing",
  "requires_action",
  "authorized",
  "succeeded",
  "failed",
  "canceled",
  "needs_review",
] as const;

export type PaymentStatus = (typeof PAYMENT_STATUSES)[number];

export const CAPTURE_METHODS = ["automatic", "manual"] as const;
export type CaptureMethod = (typeof CAPTURE_METHODS)[number];

/** Why a payment failed. `retry` tells the client what a next try needs. */
export interface Failure {
  /** The provider's or our own stable code, e.g. `card_declined`, `provider_unavailable`. */
  readonly code: string;
  readonly decline_code: string | null;
  readonly message: string | null;
  /** The provider's advice on another try, verbatim (`do_not_try_again`, …). */
  readonly advice_code: string | null;
  /** `same_key`: proven to be without effect, the same key runs afresh. `new_key`: final under this key. */
  readonly retry: "same_key" | "new_key";
}

/** What the customer must do; exactly one of the two is there. */
export interface NextAction {
  readonly type: "redirect_to_url" | "use_client_secret";
  readonly redirect_url: string | null;
  readonly client_secret: string | null;
}

/** While an outcome is unknown or a person must decide: what is known, and when it is asked about next. */
export interface Resolution {
  readonly state: "unknown" | "held" | "review";
  readonly reason: string;
  readonly next_check_at: string | null;
}

/** Why a payment is `canceled`. */
export const CANCELLATION_REASONS = [
  /** By `POST …/cancel`. */
  "requested",
  "customer_action_expired",
  "authorization_expired",
  /** By somebody else, at the provider. */
  "canceled_at_provider",
] as const;
export type CancellationReason = (typeof CANCELLATION_REASONS)[number];

/** A dispute as it is shown on its payment: what the provider said when it was last asked. */
export interface Dispute {
  readonly id: string;
  readonly status: string;
  /** Integer, ISO 4217 minor unit. */
  readonly amount: number;
  readonly currency: string;
  readonly reason: string | null;
}

/** One intent to charge. Amounts are integers in the currency's ISO 4217 minor unit. */
export interface Payment {
  readonly tenantId: string;
  readonly id: string;
  readonly status: PaymentStatus;
  /** Grows by one with every write; compare-and-set names it. */
  readonly version: number;
  readonly amount: number;
  /** ISO 4217, lower case. */
  readonly currency: string;
  readonly captureMethod: CaptureMethod;
  readonly paymentMethod: string;
  readonly customer: string | null;
  readonly merchantOrderId: string | null;
  /** Whether this payment still holds its order id: until its provider object can no longer charge. */
  readonly holdsOrderId: boolean;
  readonly description: string | null;
  readonly statementDescriptor: string | null;
  readonly returnUrl: string | null;
  readonly metadata: Readonly<Record<string, string>>;
  readonly provider: string;
  readonly providerPaymentId: string | null;
  readonly nextAction: NextAction | null;
  readonly failure: Failure | null;
  readonly resolution: Resolution | null;
  readonly amountCapturable: number;
  readonly amountCaptured: number;
  readonly amountRefunded: number;
  /** The amounts of all refunds that have not failed. */
  readonly refundReserved: number;
  /** The attempt of the capture or cancel in flight; one at a time. */
  readonly openEffect: string | null;
  /** Until when an authorisation can be captured; null where there is none or the provider does not say. */
  readonly authorizedUntil: Date | null;
  readonly cancellationReason: CancellationReason | null;
  readonly disputes: readonly Dispute[];
  readonly livemode: boolean;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** Of a payment that nothing has happened to yet. */
export const UNTOUCHED = {
  status: "processing",
  version: 1,
  nextAction: null,
  failure: null,
  resolution: null,
  amountCapturable: 0,
  amountCaptured: 0,
  amountRefunded: 0,
  refundReserved: 0,
  openEffect: null,
  authorizedUntil: null,
  cancellationReason: null,
  disputes: [],
} as const satisfies Partial<Payment>;

/** The validated input of a payment, defaults applied: what the fingerprint covers. */
export interface PaymentInput {
  readonly amount: number;
  readonly currency: string;
  readonly payment_method: string;
  readonly capture_method: CaptureMethod;
  readonly merchant_order_id: string | null;
  readonly customer: string | null;
  readonly description: string | null;
  readonly statement_descriptor: string | null;
  readonly return_url: string | null;
  readonly metadata: Readonly<Record<string, string>>;
}
