import { describe, expect, it } from "vitest";
import type { ChargeCall } from "../../../src/domain/provider.js";
import {
  ABSENT,
  ASK_FIND,
  ASK_GET,
  asked,
  CHARGE_ID,
  claimed,
  DECLINED,
  decline,
  END,
  found,
  notPerformed,
  object,
  rejection,
  replayedObject,
  SEND_CONFIRM,
  SEND_FENCE,
  sent,
  unanswered,
  unknown,
  viewIn,
} from "./charge-fixtures.js";

describe("a replayed answer describes the past", () => {
  it("so a replayed 2xx to a confirm is followed by a GET", () => {
    const replay = sent(viewIn("confirming"), "confirm", replayedObject("succeeded"));
    expect(replay.then).toEqual(ASK_GET);
    expect(replay.payment.status).toBe("processing");
    expect(asked(replay.view, "get", found("succeeded")).payment.status).toBe("succeeded");
  });

  it("so a replayed 402 to a confirm is followed by a GET, and the payment of today counts", () => {
    const replay = sent(viewIn("confirming"), "confirm", decline(true));
    expect(replay.then).toEqual(ASK_GET);
    expect(replay.payment.status).toBe("processing");
    expect(asked(replay.view, "get", found("succeeded")).payment.status).toBe("succeeded");
    expect(asked(replay.view, "get", found("declined")).payment.status).toBe("failed");
  });

  it.each([replayedObject("requires_action"), decline(true)])(
    "so a confirm whose key has its answer is not sent again where the object does not show it",
    (outcome) => {
      const replay = sent(viewIn("confirming", { attempt: { unresolved: true } }), "confirm", outcome);
      expect(asked(replay.view, "get", found("created")).then).toEqual(SEND_FENCE);
    },
  );

  it("so a replayed create commits the id and asks before it confirms, for the first time", () => {
    const replay = sent(viewIn("creating"), "create", replayedObject("created"));
    expect(replay.then).toEqual(ASK_GET);
    expect(replay.attempt).toMatchObject({ state: "charge_created", providerPaymentId: CHARGE_ID });
    const silent = asked(replay.view, "get", unanswered("timeout"));
    expect(claimed(silent.view).then).toEqual(ASK_GET);

    const seen = asked(silent.view, "get", found("created"));
    expect(seen.then).toEqual(SEND_CONFIRM);
    // A refusal of this confirm says all there is to say: no earlier one was sent.
    expect(seen.attempt).toMatchObject({
      state: "confirming",
      unresolved: false,
      unknownSince: null,
      waits: 0,
    });
  });
});

describe("a refusal by the provider", () => {
  it("of the request, before an object exists, ends the attempt and frees the order id", () => {
    const refused = sent(viewIn("creating"), "create", rejection());
    expect(refused.then).toEqual(END);
    expect(refused.attempt.state).toBe("completed");
    expect(refused.change.paymentEvent).toBe("REJECT");
    expect(refused.payment).toMatchObject({
      status: "failed",
      holdsOrderId: false,
      failure: { retry: "new_key" },
    });
  });

  it("of the card at the create is a decline, since nothing was made that could be paid", () => {
    const refused = sent(viewIn("creating"), "create", decline());
    expect(refused.then).toEqual(END);
    expect(refused.change.paymentEvent).toBe("DECLINE");
    expect(refused.payment).toMatchObject({ status: "failed", holdsOrderId: false, failure: DECLINED });
  });

  it("of the card at the create is looked into where it is replayed", () => {
    const unsure = sent(viewIn("creating"), "create", decline(true));
    expect(unsure.then).toEqual(ASK_FIND);
    expect(unsure.payment.status).toBe("processing");
    expect(asked(unsure.view, "find", found("created")).then).toEqual(SEND_CONFIRM);
  });

  it("of a card, stored under the create's key, is not asked for again", () => {
    const replay = sent(viewIn("creating", { attempt: { unresolved: true } }), "create", decline(true));
    expect(asked(replay.view, "find", ABSENT).payment).toMatchObject({
      status: "failed",
      failure: { retry: "same_key" },
    });
  });

  it.each([
    { name: "declined", outcome: decline(), event: "DECLINE", code: "card_declined" },
    { name: "rejected", outcome: rejection(), event: "REJECT", code: "invalid_request_error" },
  ])(
    "of the confirm ($name) fails the payment, closes the object, and keeps the order id until then",
    (refusal) => {
      const refused = sent(viewIn("confirming"), "confirm", refusal.outcome);
      expect(refused.then).toEqual(SEND_FENCE);
      expect(refused.attempt).toMatchObject({ state: "fencing", unresolved: true });
      expect(refused.change.paymentEvent).toBe(refusal.event);
      expect(refused.payment).toMatchObject({
        status: "failed",
        holdsOrderId: true,
        failure: { code: refusal.code, retry: "new_key" },
      });

      const fenced = sent(refused.view, "fence", object("canceled"));
      expect(fenced.then).toEqual(ASK_GET);
      expect(fenced.payment.holdsOrderId).toBe(true);

      const readBack = asked(fenced.view, "get", found("canceled"));
      expect(readBack.then).toEqual(END);
      expect(readBack.payment).toMatchObject({
        status: "failed",
        holdsOrderId: false,
        failure: { retry: "new_key" },
      });
      expect(readBack.attempt.state).toBe("completed");
    },
  );

  it("is no answer that a fence can have: the object is looked at", () => {
    for (const outcome of [rejection(), decline(), decline(true)]) {
      const fenced = sent(viewIn("fencing"), "fence", outcome);
      expect(fenced.then).toEqual(ASK_GET);
      expect(fenced.payment.status).toBe("processing");
    }
  });
});

describe("every answer to a send", () => {
  it.each(["create", "confirm", "fence"] satisfies ChargeCall[])(
    "to %s is in the timeline, with its request id",
    (call) => {
      const state = call === "create" ? "creating" : call === "confirm" ? "confirming" : "fencing";
      const { change } = sent(viewIn(state), call, unknown("timeout"));
      expect(change.note).toEqual({
        kind: "send",
        call,
        outcome: "unknown: timeout",
        evidence: expect.objectContaining({ requestId: "req_1" }) as unknown,
      });
    },
  );

  it("is told by its class", () => {
    const outcomeOf = (outcome: Parameters<typeof sent>[2]) =>
      sent(viewIn("confirming"), "confirm", outcome).change.note?.outcome;
    expect(outcomeOf(object("succeeded"))).toBe("object: succeeded");
    expect(outcomeOf(replayedObject("succeeded"))).toBe("replayed object: succeeded");
    expect(outcomeOf(decline())).toBe("declined: insufficient_funds");
    expect(outcomeOf(decline(true))).toBe("replayed declined: insufficient_funds");
    expect(outcomeOf(rejection())).toBe("rejected: invalid_request_error");
    expect(outcomeOf(notPerformed("rate_limited"))).toBe("not performed: rate_limited");
  });
});
