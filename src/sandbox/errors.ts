import type Stripe from "stripe";

/** The members of Stripe's error object that the sandbox sends (docs.stripe.com/api/errors). */
export interface WireError {
  type: "api_error" | "card_error" | "idempotency_error" | "invalid_request_error";
  message: string;
  code?: string;
  param?: string;
  decline_code?: string;
  advice_code?: string;
  network_decline_code?: string;
  charge?: string;
  payment_intent?: Stripe.PaymentIntent;
  payment_method?: Stripe.PaymentMethod;
}

/** A refusal on its way to the wire. */
export class StripeFailure extends Error {
  readonly status: number;
  readonly error: WireError;
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Found while the endpoint ran, so it becomes the key's first result. False for what comes before execution:
   * parameter validation, 401, 409 in use, 429 (docs.stripe.com/api/idempotent_requests).
   */
  readonly saved: boolean;

  constructor(status: number, error: WireError, options: FailureOptions = {}) {
    super(error.message);
    this.status = status;
    this.error = error;
    this.headers = options.headers ?? {};
    this.saved = options.saved ?? false;
  }
}

interface FailureOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly saved?: boolean;
}

/** The body Stripe sends with an error: `doc_url` where there is a code, and the request's log page. */
export function errorBody(error: WireError, requestId: string): Record<string, unknown> {
  return {
    error: {
      ...error,
      ...(error.code === undefined
        ? {}
        : { doc_url: `https://stripe.com/docs/error-codes/${error.code.replaceAll("_", "-")}` }),
      request_log_url: `https://dashboard.stripe.com/logs/${requestId}`,
    },
  };
}

/** A parameter is wrong in itself: a 400 of type `invalid_request_error`, never saved under a key. */
export function invalidRequest(message: string, code?: string, param?: string): StripeFailure {
  return new StripeFailure(400, {
    type: "invalid_request_error",
    message,
    ...(code === undefined ? {} : { code }),
    ...(param === undefined ? {} : { param }),
  });
}

/** An object named in the path is a 404, one named by a parameter a 400. */
export function resourceMissing(status: 400 | 404, kind: string, id: string, param: string): StripeFailure {
  return new StripeFailure(
    status,
    { type: "invalid_request_error", code: "resource_missing", message: `No such ${kind}: '${id}'`, param },
    { saved: true },
  );
}

/** The object is elsewhere in its life; it comes with the error, so that the caller sees where. */
export function unexpectedState(message: string, paymentIntent: Stripe.PaymentIntent): StripeFailure {
  return new StripeFailure(
    400,
    {
      type: "invalid_request_error",
      code: "payment_intent_unexpected_state",
      message,
      payment_intent: paymentIntent,
    },
    { saved: true },
  );
}

/** Another request holds the object (docs.stripe.com/rate-limits, object lock timeouts). */
export function lockTimeout(): StripeFailure {
  return new StripeFailure(
    429,
    {
      type: "invalid_request_error",
      code: "lock_timeout",
      message:
        "This object cannot be accessed right now because another API request or Stripe process is currently " +
        "accessing it. If you see this error intermittently, retry the request. If you see this error frequently " +
        "and are making multiple concurrent requests to a single object, make your requests serially or at a lower rate.",
    },
    { headers: { "stripe-should-retry": "true" } },
  );
}

export function keyInUse(): StripeFailure {
  return new StripeFailure(
    409,
    {
      type: "idempotency_error",
      code: "idempotency_key_in_use",
      message: "There is currently another in-progress request using this Stripe-Idempotency-Key.",
    },
    { headers: { "stripe-should-retry": "true" } },
  );
}

/** Same key, other parameters or another endpoint (docs.stripe.com/api/idempotent_requests). */
export function keyMismatch(key: string, paths: { first: string; now: string }): StripeFailure {
  const use = `Try using a key other than '${key}' if you meant to execute a different request.`;
  const message =
    paths.first === paths.now
      ? `Keys for idempotent requests can only be used with the same parameters they were first used with. ${use}`
      : `Keys for idempotent requests can only be used for the same endpoint they were first used for ` +
        `('${paths.now}' vs '${paths.first}'). ${use}`;
  return new StripeFailure(400, { type: "idempotency_error", message });
}
