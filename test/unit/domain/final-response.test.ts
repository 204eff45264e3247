import { describe, expect, it } from "vitest";
import {
  paymentDocument,
  problemDocument,
  refundDocument,
  type StoredResponse,
} from "../../../src/domain/documents.js";
import { ERROR_CODES, type ErrorCode } from "../../../src/domain/errors.js";
import { finalResponse, problemResponse } from "../../../src/domain/final-response.js";
import {
  ABSENT,
  asked,
  BUDGET_MS,
  type Decided,
  decline,
  found,
  object,
  paymentWith,
  rejection,
  sent,
  unanswered,
  unknown,
  viewIn,
} from "./charge-fixtures.js";
import { EFFECT_CASES } from "./effect-cases.js";
import {
  effectAsked,
  effectSent,
  effectView,
  PROVIDER_REFUND_ID,
  REFUND_ID,
  refundMade,
} from "./effect-fixtures.js";

type From = Parameters<typeof finalResponse>[0];
const responseTo = (view: From, decide: (view: From) => Decided) => {
  const decided = decide(view);
  return { response: finalResponse(view, decided.change, decided), ...decided };
};
const bodyOf = (response: StoredResponse | null) => JSON.parse(response?.body ?? "null") as unknown;
const PAYMENT_PATH = "/v1/payments/pay_own";
const REFUND_PATH = `/v1/refunds/${REFUND_ID}`;

describe("the answer to a charge that ends", () => {
  it.each(["succeeded", "authorized", "requires_action"] as const)("%s is 201 with the payment", (status) => {
    const { response, payment } = responseTo(viewIn("confirming"), (view) =>
      sent(view, "confirm", object(status)),
    );
    expect(response).toEqual({
      status: 201,
      headers: { "Content-Type": "application/json", Location: PAYMENT_PATH },
      body: JSON.stringify(paymentDocument(payment)),
    });
  });

  it.each([
    { outcome: decline(), code: "payment_declined" },
    { outcome: rejection(), code: "payment_rejected" },
  ] as const)("in a refusal is 402 $code with the payment, as it failed", ({ outcome, code }) => {
    const { response, payment } = responseTo(viewIn("confirming"), (view) => sent(view, "confirm", outcome));
    expect(response).toMatchObject({
      status: 402,
      headers: { "Content-Type": "application/problem+json", Location: PAYMENT_PATH },
    });
    const detail = payment.failure?.message ?? "";
    const extra = { requestId: "req_http", payment };
    expect(bodyOf(response)).toEqual(JSON.parse(JSON.stringify(problemDocument(code, detail, extra))));
  });

  it("in a cancel by somebody else says the state", () => {
    const { response } = responseTo(viewIn("following"), (view) => asked(view, "get", found("canceled")));
    expect(response?.status).toBe(409);
    expect(bodyOf(response)).toMatchObject({ code: "invalid_state", payment: { status: "canceled" } });
  });

  it("without effect is none: the same key runs afresh", () => {
    const view = viewIn("create_unknown", { afterMs: BUDGET_MS });
    const { response, payment } = responseTo(view, (late) => asked(late, "find", ABSENT));
    expect(payment.status).toBe("failed");
    expect(response).toBeNull();
  });

  it("nowhere yet is none", () => {
    expect(
      responseTo(viewIn("confirming"), (view) => sent(view, "confirm", unknown("timeout"))).response,
    ).toBeNull();
    const review = viewIn("confirm_unknown", {
      afterMs: 200_000_000,
      attempt: { unknownSince: new Date(0) },
    });
    const reviewed = responseTo(review, (view) => asked(view, "get", unanswered("timeout")));
    expect([reviewed.payment.status, reviewed.response]).toEqual(["needs_review", null]);
  });
});

describe("the answer to an effect that ends", () => {
  it.each([
    { kind: "capture", outcome: object("succeeded", { amountCaptured: 1_000 }) },
    { kind: "cancel", outcome: object("canceled") },
  ] as const)("done is 200 with the payment: $kind", ({ kind, outcome }) => {
    const { response, payment } = responseTo(effectView(kind, "sending"), (view) =>
      effectSent(view, outcome),
    );
    expect(response).toEqual({
      status: 200,
      headers: { "Content-Type": "application/json", Location: PAYMENT_PATH },
      body: JSON.stringify(paymentDocument(payment)),
    });
  });

  it("done is 201 with the refund, at its own place", () => {
    const { response, refund } = responseTo(effectView("refund", "sending"), (view) =>
      effectSent(view, refundMade("succeeded")),
    );
    if (refund === null) throw new Error("the attempt of a refund has it");
    expect(response).toEqual({
      status: 201,
      headers: { "Content-Type": "application/json", Location: REFUND_PATH },
      body: JSON.stringify(refundDocument(refund)),
    });
  });

  it("refused is the problem with the payment, and with the refund that has failed", () => {
    const declined = responseTo(effectView("capture", "sending"), (view) => effectSent(view, decline()));
    expect(declined.response).toMatchObject({ status: 402, headers: { Location: PAYMENT_PATH } });
    expect(bodyOf(declined.response)).toMatchObject({
      code: "payment_declined",
      request_id: "req_http",
      payment: { id: "pay_own", status: "authorized" },
    });
    expect(bodyOf(declined.response)).not.toHaveProperty("refund");

    const failed = responseTo(effectView("refund", "sending"), (view) =>
      effectSent(view, refundMade("failed")),
    );
    expect(failed.response).toMatchObject({ status: 402, headers: { Location: REFUND_PATH } });
    expect(bodyOf(failed.response)).toMatchObject({
      code: "refund_failed",
      payment: { amount_refundable: 4200 },
      refund: { id: REFUND_ID, status: "failed", provider_refund_id: PROVIDER_REFUND_ID },
    });
  });

  it("without effect is none, and so is one that goes on", () => {
    const late = effectView("refund", "started", { afterMs: BUDGET_MS });
    expect(responseTo(late, (view) => effectAsked(view, "find_refund", ABSENT)).response).toBeNull();
    const pending = responseTo(effectView("refund", "sending"), (view) =>
      effectSent(view, refundMade("pending")),
    );
    expect(pending.response).toBeNull();
  });

  it("is there exactly where it is known, in every case", () => {
    const codes = new Set<string>();
    for (const { view, change, applied } of EFFECT_CASES) {
      const response = finalResponse(view, change, applied);
      const hasAnswer = change.answer !== undefined && change.answer.type !== "not_performed";
      expect(response !== null).toBe(hasAnswer);
      if (change.answer?.type !== "refused") continue;
      codes.add(change.answer.code);
      expect(response?.status).toBe(ERROR_CODES[change.answer.code].status);
    }
    expect([...codes].sort()).toEqual([
      "amount_too_large",
      "authorization_expired",
      "invalid_state",
      "payment_declined",
      "payment_rejected",
      "refund_failed",
    ] satisfies ErrorCode[]);
  });
});

describe("a refusal at the accept", () => {
  it("is the same document, with the payment as it is", () => {
    const payment = paymentWith({ status: "failed" });
    const response = problemResponse("invalid_state", "The payment is failed.", {
      requestId: "req_1",
      payment,
    });
    expect(response).toMatchObject({
      status: 409,
      headers: { "Content-Type": "application/problem+json", Location: PAYMENT_PATH },
    });
    expect(bodyOf(response)).toMatchObject({
      code: "invalid_state",
      detail: "The payment is failed.",
      request_id: "req_1",
      payment: { id: "pay_own", status: "failed" },
    });
  });
});
