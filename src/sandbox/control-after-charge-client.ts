import type Stripe from "stripe";
import type { ControlTransport } from "./control-transport.js";
import type { DisputeInput, PayoutFilter } from "./control-types.js";
import type { PaymentIntentRecord } from "./objects.js";

/**
 * What the merchant's people do at the provider, past the API: no idempotency key, no metadata, no fault, and past the
 * lock of a request under way. Amounts are in minor units. Refused where the API would refuse it.
 */
export class Dashboard {
  readonly #transport: ControlTransport;

  constructor(transport: ControlTransport) {
    this.#transport = transport;
  }

  /** Without an amount, all of it; the rest of a part is released. */
  capture(paymentIntentId: string, amount?: number): Promise<PaymentIntentRecord> {
    return this.#transport.send("POST", `/payment_intents/${paymentIntentId}/capture`, amountOf(amount));
  }

  cancel(paymentIntentId: string): Promise<PaymentIntentRecord> {
    return this.#transport.send("POST", `/payment_intents/${paymentIntentId}/cancel`);
  }

  /** Without an amount, all that is left. */
  refund(paymentIntentId: string, amount?: number): Promise<Stripe.Refund> {
    return this.#transport.send("POST", `/payment_intents/${paymentIntentId}/refund`, amountOf(amount));
  }

  /** Calls a refund off: one that is pending, or that succeeded within the last 30 minutes. */
  cancelRefund(refundId: string): Promise<Stripe.Refund> {
    return this.#transport.send("POST", `/refunds/${refundId}/cancel`);
  }

  /** Hands in evidence: the dispute is `under_review`, and `charge.dispute.updated` tells of it. */
  contestDispute(disputeId: string): Promise<Stripe.Dispute> {
    return this.#transport.send("POST", `/disputes/${disputeId}/contest`);
  }
}

/** What banks and the provider itself do, at the time that a test wants. Amounts are in minor units. */
export class Bank {
  readonly #transport: ControlTransport;

  constructor(transport: ControlTransport) {
    this.#transport = transport;
  }

  /** The authorisation's time is over now: its `capture_before` is set to the present, and it is released. */
  expireAuthorization(paymentIntentId: string): Promise<PaymentIntentRecord> {
    return this.#transport.send("POST", `/payment_intents/${paymentIntentId}/expire`);
  }

  /** Decides a refund that is `pending` or `requires_action`. */
  settleRefund(
    refundId: string,
    outcome: "succeed" | "fail" | "require_action",
    failureReason?: string,
  ): Promise<Stripe.Refund> {
    return this.#transport.send("POST", `/refunds/${refundId}/settle`, {
      outcome,
      ...reasonOf(failureReason),
    });
  }

  /** A refund fails, one that has succeeded too: `failure_reason` is `expired_or_canceled_card` unless given. */
  failRefund(refundId: string, failureReason?: string): Promise<Stripe.Refund> {
    return this.#transport.send("POST", `/refunds/${refundId}/fail`, reasonOf(failureReason));
  }

  /** Default: a chargeback for `fraudulent` over what is captured and not refunded, its funds withdrawn at once. */
  openDispute(paymentIntentId: string, input: DisputeInput = {}): Promise<Stripe.Dispute> {
    return this.#transport.send("POST", `/payment_intents/${paymentIntentId}/dispute`, input);
  }

  /** The money leaves the balance; an inquiry becomes a chargeback. */
  withdrawFunds(disputeId: string): Promise<Stripe.Dispute> {
    return this.#transport.send("POST", `/disputes/${disputeId}/withdraw`);
  }

  /** The money comes back; its fee too with `return_fee`. */
  reinstateFunds(disputeId: string, options: { return_fee?: boolean } = {}): Promise<Stripe.Dispute> {
    return this.#transport.send("POST", `/disputes/${disputeId}/reinstate`, options);
  }

  /** Ends a dispute. Funds of one that is won come back, unless `reinstate` is false. An inquiry is `warning_closed`. */
  closeDispute(
    disputeId: string,
    outcome: "won" | "lost",
    options: { reinstate?: boolean; return_fee?: boolean } = {},
  ): Promise<Stripe.Dispute> {
    return this.#transport.send("POST", `/disputes/${disputeId}/close`, { outcome, ...options });
  }

  /** Pays out everything available, one payout an account, mode and currency: made, paid and reconciled. */
  payOut(filter: PayoutFilter = {}): Promise<Stripe.Payout[]> {
    return this.#transport.send("POST", "/payouts", filter);
  }
}

function amountOf(amount: number | undefined): { amount?: number } {
  return amount === undefined ? {} : { amount };
}

function reasonOf(failureReason: string | undefined): { failure_reason?: string } {
  return failureReason === undefined ? {} : { failure_reason: failureReason };
}
