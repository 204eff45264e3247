import type { Applied } from "./apply-change.js";
import type { Change, ChargeView, EffectAnswer } from "./charge-change.js";
import {
  JSON_TYPE,
  type JsonObject,
  PROBLEM_TYPE,
  type ProblemExtra,
  paymentDocument,
  paymentPath,
  problemDocument,
  refundDocument,
  refundPath,
  type StoredResponse,
} from "./documents.js";
import { ERROR_CODES, type ErrorCode } from "./errors.js";
import type { Payment } from "./payment.js";

/** The answer that a keyed request gets for ever, where this change ends it; null where the key stays open. */
export function finalResponse(view: ChargeView, change: Change, applied: Applied): StoredResponse | null {
  if (view.attempt.kind !== "charge") {
    return change.answer === undefined ? null : effectResponse(view, change.answer, applied);
  }
  return applied.paymentMoved ? chargeResponse(view, change, applied) : null;
}

function chargeResponse(view: ChargeView, change: Change, applied: Applied): StoredResponse | null {
  const { payment } = applied;
  switch (payment.status) {
    case "succeeded":
    case "authorized":
    case "requires_action":
      return document(201, paymentDocument(payment), paymentPath(payment.id));
    case "failed": {
      if (change.paymentEvent === "NOT_PERFORMED") return null;
      const code = change.paymentEvent === "DECLINE" ? "payment_declined" : "payment_rejected";
      return problem(view, applied, code, payment.failure?.message ?? "No reason was given.");
    }
    case "canceled": {
      const detail =
        change.answer?.type === "refused"
          ? change.answer.detail
          : "The payment was canceled at the provider; its state is canceled.";
      return problem(view, applied, "invalid_state", detail);
    }
    case "processing":
    case "needs_review":
      return null;
  }
}

function effectResponse(view: ChargeView, answer: EffectAnswer, applied: Applied): StoredResponse | null {
  const { payment, refund } = applied;
  switch (answer.type) {
    case "done":
      return refund === null
        ? document(200, paymentDocument(payment), paymentPath(payment.id))
        : document(201, refundDocument(refund), refundPath(refund.id));
    case "refused":
      return problem(view, applied, answer.code, answer.detail);
    case "not_performed":
      return null;
  }
}

function document(status: number, body: JsonObject, location: string): StoredResponse {
  return { status, headers: { "Content-Type": JSON_TYPE, Location: location }, body: JSON.stringify(body) };
}

function problem(view: ChargeView, applied: Applied, code: ErrorCode, detail: string): StoredResponse {
  const { payment, refund } = applied;
  return problemResponse(code, detail, {
    requestId: view.attempt.requestId,
    payment,
    ...(refund === null ? {} : { refund }),
  });
}

/** A refusal as it is stored and replayed. `Location` is the refund's where there is one, else the payment's. */
export function problemResponse(
  code: ErrorCode,
  detail: string,
  extra: ProblemExtra & { readonly payment: Payment },
): StoredResponse {
  const location = extra.refund === undefined ? paymentPath(extra.payment.id) : refundPath(extra.refund.id);
  return {
    status: ERROR_CODES[code].status,
    headers: { "Content-Type": PROBLEM_TYPE, Location: location },
    body: JSON.stringify(problemDocument(code, detail, extra)),
  };
}
