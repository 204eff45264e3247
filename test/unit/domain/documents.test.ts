import { describe, expect, it } from "vitest";
import {
  paymentDocument,
  paymentEventDocument,
  paymentPath,
  problemDocument,
} from "../../../src/domain/documents.js";
import { DECLINED, NEXT_ACTION, paymentWith } from "./charge-fixtures.js";

const succeeded = paymentWith({
  status: "succeeded",
  providerPaymentId: "pi_own",
  amountCaptured: 4200,
  metadata: { b: "1", "10": "2" },
});

describe("the document of a payment", () => {
  it("has the members of the contract, in its order", () => {
    expect(JSON.stringify(paymentDocument(succeeded))).toBe(
      '{"id":"pay_own","object":"payment","status":"succeeded","amount":4200,"currency":"usd","amount_capturable":0,' +
        '"amount_captured":4200,"amount_refunded":0,"amount_refundable":4200,"capture_method":"automatic","payment_method":"pm_card_visa",' +
        '"customer":null,"merchant_order_id":"order-17","description":null,"statement_descriptor":null,' +
        '"return_url":null,"metadata":{"10":"2","b":"1"},"provider":"stripe","provider_payment_id":"pi_own",' +
        '"next_action":null,"failure":null,"authorized_until":null,"cancellation_reason":null,"disputes":[],"resolution":null,"livemode":false,' +
        '"created_at":"2026-01-15T10:00:00.000Z","updated_at":"2026-01-15T10:00:00.000Z"}',
    );
  });

  it("shows nothing of what is ours alone: version, tenant, whether the order id is held", () => {
    const shown = Object.keys(paymentDocument(succeeded));
    expect(shown.filter((name) => /version|tenant|holds|attempt/i.test(name))).toEqual([]);
  });

  it("shows the client secret in an answer and never in an event, which goes to many", () => {
    const secret = {
      type: "use_client_secret",
      redirect_url: null,
      client_secret: "pi_own_secret_1",
    } as const;
    const waiting = paymentWith({ status: "requires_action", nextAction: secret });
    expect(JSON.stringify(paymentDocument(waiting))).toContain("pi_own_secret_1");
    const told = paymentEventDocument(waiting);
    expect(JSON.stringify(told)).not.toContain("pi_own_secret_1");
    expect(told).toEqual({ ...paymentDocument(waiting), next_action: { ...secret, client_secret: null } });
  });

  it("shows a failure, what the customer must do, and what is not known yet", () => {
    const resolution = { state: "unknown", reason: "timeout", next_check_at: null } as const;
    const document = paymentDocument(paymentWith({ failure: DECLINED, nextAction: NEXT_ACTION, resolution }));
    expect(document).toMatchObject({ failure: DECLINED, next_action: NEXT_ACTION, resolution });
  });

  it("is found at its path", () => {
    expect(paymentPath("pay_own")).toBe("/v1/payments/pay_own");
  });
});

describe("a problem document", () => {
  it("has the status and title of its code, the page of it, and the request's id", () => {
    expect(problemDocument("payment_declined", "No funds.", { requestId: "req_1" })).toEqual({
      type: "/docs/errors/payment_declined",
      title: "The payment was declined",
      status: 402,
      detail: "No funds.",
      code: "payment_declined",
      request_id: "req_1",
    });
  });

  it("carries the payment and the faults where there are some", () => {
    const faults = [{ pointer: "/amount", detail: "must be a number" }];
    const document = problemDocument("validation_failed", "No.", {
      requestId: "req_1",
      payment: succeeded,
      faults,
    });
    expect(document["errors"]).toEqual(faults);
    expect(document["payment"]).toEqual(paymentDocument(succeeded));
  });
});
