import type Stripe from "stripe";
import { bookDispute, bookDisputeReversal } from "./balance-transactions.js";
import { type Call, emit } from "./call.js";
import { resourceMissing } from "./errors.js";
import { stripeId } from "./ids.js";
import { ControlError } from "./json-shape.js";
import { pageOf } from "./object-lists.js";
import { textOf } from "./parameters.js";
import type { ListBody } from "./payment-intent-lists.js";
import { failRefund } from "./refunds.js";

const RESPONSE_DAYS = 7;

export interface NewDispute {
  /** Minor units. Absent: what is captured and not refunded. */
  readonly amount?: number | undefined;
  readonly reason: string;
  /** An inquiry takes no money, and its charge can still be refunded. */
  readonly inquiry: boolean;
  /** Whether the money is withdrawn at once. Absent: it is, unless it is an inquiry. */
  readonly withdraw?: boolean | undefined;
}

const CLOSED = ["won", "lost", "warning_closed", "prevented"];

/** Whether a dispute forbids a refund of the charge: not an inquiry, and not one that was won. */
export function isDisputed(call: Call, charge: Stripe.Charge): boolean {
  return charge.disputed && disputesOf(call, charge).some((dispute) => !dispute.is_charge_refundable);
}

function disputesOf(call: Call, charge: Stripe.Charge): Stripe.Dispute[] {
  return call.realm.tables.dispute.oldestFirst().filter((dispute) => dispute.charge === charge.id);
}

/** The customer's bank disputes the charge. Throws ControlError where there is nothing to dispute. */
export function openDispute(call: Call, charge: Stripe.Charge, input: NewDispute): Stripe.Dispute {
  const most = charge.amount_captured - refundedOf(charge);
  const amount = input.amount ?? most;
  if (!charge.captured || amount < 1 || amount > charge.amount_captured) {
    throw new ControlError(`${charge.id} has not so much to dispute: ${amount} of ${most}`, 409);
  }
  if (disputesOf(call, charge).some((dispute) => !isClosed(dispute))) {
    throw new ControlError(`${charge.id} is in dispute already`, 409);
  }
  const opened = blankDispute(call, charge, amount, input);
  call.store.saveRow(call.realm, "dispute", opened);
  call.store.saveCharge(call.realm, { ...charge, disputed: true });
  emit(call, "charge.dispute.created", opened);
  if (!input.inquiry) failPendingRefunds(call, charge);
  return (input.withdraw ?? !input.inquiry) ? withdrawFunds(call, opened) : opened;
}

/** What of the charge was given back after its capture; a released rest of the authorisation is not. */
function refundedOf(charge: Stripe.Charge): number {
  return charge.amount_refunded - (charge.amount - charge.amount_captured);
}

// `charge_for_pending_refund_disputed` (docs.stripe.com/refunds#failed-refunds).
function failPendingRefunds(call: Call, charge: Stripe.Charge): void {
  for (const refund of call.realm.tables.refund.oldestFirst()) {
    if (refund.charge === charge.id && refund.status === "pending") {
      failRefund(call, refund, "charge_for_pending_refund_disputed");
    }
  }
}

/** The money leaves the balance, with the fee; an inquiry becomes a chargeback. */
export function withdrawFunds(call: Call, dispute: Stripe.Dispute): Stripe.Dispute {
  if (isWithdrawn(dispute)) throw new ControlError(`the funds of ${dispute.id} are withdrawn already`, 409);
  if (isClosed(dispute)) throw new ControlError(`${dispute.id} is ${dispute.status}`, 409);
  const escalates = dispute.status === "warning_needs_response" || dispute.status === "warning_under_review";
  const withdrawn: Stripe.Dispute = {
    ...dispute,
    status: escalates ? "needs_response" : dispute.status,
    is_charge_refundable: false,
    balance_transactions: [...dispute.balance_transactions, bookDispute(call, dispute)],
  };
  call.store.saveRow(call.realm, "dispute", withdrawn);
  if (escalates) emit(call, "charge.dispute.updated", withdrawn, { status: dispute.status });
  emit(call, "charge.dispute.funds_withdrawn", withdrawn);
  return withdrawn;
}

/** The money comes back into the balance, with the fee where `returnFee`. */
export function reinstateFunds(call: Call, dispute: Stripe.Dispute, returnFee: boolean): Stripe.Dispute {
  if (!isWithdrawn(dispute)) throw new ControlError(`the funds of ${dispute.id} are not withdrawn`, 409);
  const reinstated: Stripe.Dispute = {
    ...dispute,
    balance_transactions: [...dispute.balance_transactions, bookDisputeReversal(call, dispute, returnFee)],
  };
  call.store.saveRow(call.realm, "dispute", reinstated);
  emit(call, "charge.dispute.funds_reinstated", reinstated);
  return reinstated;
}

/** The merchant hands in evidence. */
export function contestDispute(call: Call, dispute: Stripe.Dispute): Stripe.Dispute {
  if (isClosed(dispute)) throw new ControlError(`${dispute.id} is ${dispute.status}`, 409);
  const contested: Stripe.Dispute = {
    ...dispute,
    status: dispute.status.startsWith("warning_") ? "warning_under_review" : "under_review",
    evidence_details: {
      ...dispute.evidence_details,
      has_evidence: true,
      submission_count: dispute.evidence_details.submission_count + 1,
      submission_method: "manual",
    },
  };
  call.store.saveRow(call.realm, "dispute", contested);
  emit(call, "charge.dispute.updated", contested, { status: dispute.status });
  return contested;
}

/** The bank decides. An inquiry that is won is `warning_closed`; funds of a won dispute come back. */
export function closeDispute(
  call: Call,
  dispute: Stripe.Dispute,
  outcome: "won" | "lost",
  options: { readonly reinstate: boolean; readonly returnFee: boolean },
): Stripe.Dispute {
  if (isClosed(dispute)) throw new ControlError(`${dispute.id} is ${dispute.status} already`, 409);
  const inquiry = dispute.status.startsWith("warning_");
  const closed: Stripe.Dispute = {
    ...dispute,
    status: inquiry ? "warning_closed" : outcome,
    is_charge_refundable: inquiry || outcome === "won",
  };
  call.store.saveRow(call.realm, "dispute", closed);
  emit(call, "charge.dispute.closed", closed);
  return outcome === "won" && options.reinstate && isWithdrawn(closed)
    ? reinstateFunds(call, closed, options.returnFee)
    : closed;
}

function isClosed(dispute: Stripe.Dispute): boolean {
  return CLOSED.includes(dispute.status);
}

function isWithdrawn(dispute: Stripe.Dispute): boolean {
  return dispute.balance_transactions.reduce((sum, each) => sum + each.amount, 0) < 0;
}

// Members of Stripe.Dispute.Evidence that are never filled in here.
const EVIDENCE =
  "access_activity_log billing_address cancellation_policy cancellation_policy_disclosure cancellation_rebuttal " +
  "customer_communication customer_email_address customer_name customer_purchase_ip customer_signature " +
  "duplicate_charge_documentation duplicate_charge_explanation duplicate_charge_id product_description receipt " +
  "refund_policy refund_policy_disclosure refund_refusal_explanation service_date service_documentation " +
  "shipping_address shipping_carrier shipping_date shipping_documentation shipping_tracking_number " +
  "uncategorized_file uncategorized_text";

function blankDispute(call: Call, charge: Stripe.Charge, amount: number, input: NewDispute): Stripe.Dispute {
  const empty = Object.fromEntries(EVIDENCE.split(" ").map((name) => [name, null]));
  return {
    id: stripeId("dp"),
    object: "dispute",
    amount,
    balance_transactions: [],
    charge: charge.id,
    created: call.nowSeconds,
    currency: charge.currency,
    enhanced_eligibility_types: [],
    evidence: { ...empty, enhanced_evidence: {} } as Stripe.Dispute.Evidence,
    evidence_details: {
      due_by: call.nowSeconds + RESPONSE_DAYS * 24 * 60 * 60,
      enhanced_eligibility: {},
      has_evidence: false,
      past_due: false,
      submission_count: 0,
      submission_method: "not_submitted",
    },
    intended_submission_method: null,
    is_charge_refundable: input.inquiry,
    livemode: charge.livemode,
    metadata: {},
    payment_intent: charge.payment_intent,
    payment_method_details: {
      type: "card",
      card: {
        brand: "visa",
        case_type: input.inquiry ? "inquiry" : "chargeback",
        network: "visa",
        network_reason_code: "10.4",
      },
    },
    reason: input.reason,
    status: input.inquiry ? "warning_needs_response" : "needs_response",
  };
}

/** `GET /v1/disputes/:id` */
export function retrieveDispute(call: Call): Stripe.Dispute {
  const id = call.objectId ?? "";
  const dispute = call.realm.tables.dispute.get(id);
  if (dispute === undefined) throw resourceMissing(404, "dispute", id, "id");
  return dispute;
}

/** `GET /v1/disputes` */
export function listDisputes(call: Call): ListBody<Stripe.Dispute> {
  const paymentIntent = textOf(call.params, "payment_intent");
  const charge = textOf(call.params, "charge");
  return pageOf(call, call.realm.tables.dispute, {
    kind: "dispute",
    url: "/v1/disputes",
    matches: (dispute) =>
      (paymentIntent === null || dispute.payment_intent === paymentIntent) &&
      (charge === null || dispute.charge === charge),
  });
}
