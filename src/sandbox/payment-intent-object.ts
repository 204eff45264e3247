import type Stripe from "stripe";
import { cardOf, type Decline, type StoredPaymentMethod } from "./payment-methods.js";

export interface NewPaymentIntent {
  readonly id: string;
  readonly secret: string;
  readonly amount: number;
  readonly currency: string;
  readonly created: number;
  readonly livemode: boolean;
}

/** Every member that the API version has, so that a reader of the object meets no gap. */
export function blankPaymentIntent(input: NewPaymentIntent): Stripe.PaymentIntent {
  return {
    id: input.id,
    object: "payment_intent",
    allowed_payment_method_types: null,
    amount: input.amount,
    amount_capturable: 0,
    amount_received: 0,
    application: null,
    application_fee_amount: null,
    automatic_payment_methods: null,
    canceled_at: null,
    cancellation_reason: null,
    capture_method: "automatic_async",
    client_secret: `${input.id}_secret_${input.secret}`,
    confirmation_method: "automatic",
    created: input.created,
    currency: input.currency,
    customer: null,
    customer_account: null,
    description: null,
    excluded_payment_method_types: null,
    last_payment_error: null,
    latest_charge: null,
    livemode: input.livemode,
    managed_payments: null,
    metadata: {},
    next_action: null,
    on_behalf_of: null,
    payment_method: null,
    payment_method_configuration_details: null,
    payment_method_options: null,
    payment_method_types: ["card"],
    payment_record: null,
    processing: null,
    receipt_email: null,
    review: null,
    setup_future_usage: null,
    shipping: null,
    source: null,
    statement_descriptor: null,
    statement_descriptor_suffix: null,
    status: "requires_payment_method",
    transfer_data: null,
    transfer_group: null,
  };
}

// What a publishable key may see (docs.stripe.com/api/payment_intents/object, "retrievable with publishable key").
const CLIENT_MEMBERS = [
  "id",
  "object",
  "amount",
  "automatic_payment_methods",
  "canceled_at",
  "cancellation_reason",
  "capture_method",
  "client_secret",
  "confirmation_method",
  "created",
  "currency",
  "description",
  "last_payment_error",
  "livemode",
  "next_action",
  "payment_method",
  "payment_method_types",
  "processing",
  "receipt_email",
  "setup_future_usage",
  "shipping",
  "source",
  "status",
] as const;

/** The object as a browser sees it: without metadata, charge or customer. */
export function clientView(paymentIntent: Stripe.PaymentIntent): Partial<Stripe.PaymentIntent> {
  return Object.fromEntries(CLIENT_MEMBERS.map((name) => [name, paymentIntent[name]]));
}

export interface NewCharge {
  readonly id: string;
  readonly created: number;
  readonly paymentIntent: Stripe.PaymentIntent;
  readonly paymentMethod: StoredPaymentMethod;
  readonly captured: boolean;
  /** Unix seconds; null: it is not only authorised. */
  readonly captureBefore: number | null;
  readonly decline: Decline | null;
}

/** The charge of one attempt, `succeeded` or `failed`. */
export function newCharge(input: NewCharge): Stripe.Charge {
  const { paymentIntent, decline } = input;
  const paid = decline === null;
  return {
    id: input.id,
    object: "charge",
    amount: paymentIntent.amount,
    amount_captured: paid && input.captured ? paymentIntent.amount : 0,
    amount_refunded: 0,
    application: null,
    application_fee: null,
    application_fee_amount: null,
    balance_transaction: null,
    billing_details: { address: null, email: null, name: null, phone: null, tax_id: null },
    calculated_statement_descriptor: "PAWL SANDBOX",
    captured: paid && input.captured,
    created: input.created,
    currency: paymentIntent.currency,
    customer: paymentIntent.customer,
    description: paymentIntent.description,
    disputed: false,
    failure_balance_transaction: null,
    failure_code: decline?.code ?? null,
    failure_message: decline?.message ?? null,
    fraud_details: {},
    livemode: paymentIntent.livemode,
    metadata: paymentIntent.metadata,
    on_behalf_of: null,
    outcome: outcomeOf(decline),
    paid,
    payment_intent: paymentIntent.id,
    payment_method: input.paymentMethod.id,
    payment_method_details: methodDetails(input),
    receipt_email: paymentIntent.receipt_email,
    receipt_number: null,
    receipt_url: null,
    refunded: false,
    review: null,
    shipping: null,
    source: null,
    source_transfer: null,
    statement_descriptor: paymentIntent.statement_descriptor,
    statement_descriptor_suffix: paymentIntent.statement_descriptor_suffix,
    status: paid ? "succeeded" : "failed",
    transfer_data: null,
    transfer_group: null,
  };
}

function methodDetails(input: NewCharge): Stripe.Charge.PaymentMethodDetails {
  const { brand, country, exp_month, exp_year, fingerprint, funding, last4 } = cardOf(input.paymentMethod);
  return {
    type: "card",
    card: {
      amount_authorized: input.decline === null ? input.paymentIntent.amount : null,
      authorization_code: null,
      brand,
      ...(input.captureBefore === null ? {} : { capture_before: input.captureBefore }),
      checks: { address_line1_check: null, address_postal_code_check: null, cvc_check: null },
      country,
      electronic_commerce_indicator: null,
      exp_month,
      exp_year,
      fingerprint: fingerprint ?? null,
      funding,
      installments: null,
      last4,
      mandate: null,
      network: brand,
      network_transaction_id: null,
      regulated_status: "unregulated",
      three_d_secure: null,
      transaction_link_id: null,
      wallet: null,
    },
  };
}

function outcomeOf(decline: Decline | null): Stripe.Charge.Outcome {
  const blocked = decline?.blocked === true;
  return {
    advice_code: decline?.adviceCode ?? null,
    network_advice_code: null,
    network_decline_code: decline?.networkDeclineCode ?? null,
    network_status:
      decline === null ? "approved_by_network" : blocked ? "not_sent_to_network" : "declined_by_network",
    reason: blocked ? "highest_risk_level" : (decline?.declineCode ?? decline?.code ?? null),
    risk_level: blocked ? "highest" : "normal",
    seller_message:
      decline === null
        ? "Payment complete."
        : "The bank did not return any further details with this decline.",
    type: decline === null ? "authorized" : blocked ? "blocked" : "issuer_declined",
  };
}
