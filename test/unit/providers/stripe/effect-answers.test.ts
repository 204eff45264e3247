import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type {
  EffectCall,
  RefundSendOutcome,
  SendContext,
  SendOutcome,
} from "../../../../src/domain/provider.js";
import { EFFECT_ROWS, invalid, unknown } from "./effect-answer-rows.js";
import {
  type Bench,
  EFFECTS,
  effectOf,
  FIRST_SEND,
  intent,
  json,
  RE_SEND,
  refund,
  reset,
  startBench,
  text,
} from "./scripted-stripe.js";

let bench: Bench;
beforeAll(async () => {
  bench = await startBench();
});
afterAll(() => bench.close());
beforeEach(() => {
  bench.stripe.requests.length = 0;
});

async function send(call: EffectCall, context: SendContext): Promise<SendOutcome | RefundSendOutcome> {
  const { provider } = bench;
  const parameters = effectOf(provider, EFFECTS[call]);
  switch (call) {
    case "capture":
      return provider.captureCharge("pi_1", parameters, context);
    case "cancel":
      return provider.voidCharge("pi_1", parameters, context);
    case "refund":
      return provider.createRefund(parameters, context);
  }
}

const ALL: readonly EffectCall[] = ["capture", "cancel", "refund"];

const REPLAYED = { "idempotent-replayed": "true" };
const cases = EFFECT_ROWS.flatMap((row) =>
  (row.calls ?? ALL).flatMap((call) => [
    [row.what, call, "a first send", FIRST_SEND, {}, row.first, row] as const,
    [row.what, call, "a re-send", RE_SEND, {}, row.again, row] as const,
    [row.what, call, "a first send, replayed", FIRST_SEND, REPLAYED, row.replayed, row] as const,
    [row.what, call, "a re-send, replayed", RE_SEND, REPLAYED, row.replayed, row] as const,
  ]),
);

describe("a refusal of an effect", () => {
  it.each(cases)("%s, to %s, on %s, comes to what it says", async (...row) => {
    const [, call, , context, headers, expected, { status, error }] = row;
    bench.stripe.script(json(status, { error }, headers));
    const outcome = await send(call, context);
    expect(outcome).toMatchObject(expected);
    expect(outcome.evidence.httpStatus).toBe(status);
    expect(bench.stripe.requests).toHaveLength(1);
  });

  it("keeps the dispute's code, so that it can be told", async () => {
    bench.stripe.script(json(400, { error: invalid("charge_disputed", { message: "Charged back." }) }));
    expect(await send("refund", FIRST_SEND)).toMatchObject({
      type: "rejected",
      failure: { code: "charge_disputed", message: "Charged back." },
    });
  });
});

describe("an effect's answer that never came, or cannot be read", () => {
  it.each(ALL)("is unknown, to %s, after one request", async (call) => {
    const body = call === "refund" ? refund() : intent();
    const replies = [
      [reset, "connection_lost"],
      [text(200, ""), "unreadable"],
      [text(200, "<html>"), "unreadable"],
      [text(200, JSON.stringify(body).slice(0, 60)), "unreadable"],
      [text(502, "<html>"), "server_error"],
      [json(200, { id: "x" }), "unreadable"],
    ] as const;
    for (const [reply, reason] of replies) {
      bench.stripe.requests.length = 0;
      bench.stripe.script(reply);
      expect(await send(call, FIRST_SEND)).toMatchObject(unknown(reason));
      expect(bench.stripe.requests).toHaveLength(1);
    }
  });

  it("is unknown where it is of another object", async () => {
    bench.stripe.script(json(200, intent({ id: "pi_2", status: "succeeded" })));
    expect(await send("capture", FIRST_SEND)).toMatchObject(unknown("unreadable"));
    expect(await send("cancel", FIRST_SEND)).toMatchObject(unknown("unreadable"));
    bench.stripe.script(json(200, refund({ payment_intent: "pi_2" })));
    expect(await send("refund", FIRST_SEND)).toMatchObject(unknown("unreadable"));
  });
});

describe("an effect that is done", () => {
  it.each([
    [{}, false],
    [REPLAYED, true],
  ])("shows the object, and whether it is a replay (%o)", async (headers, replayed) => {
    const evidence = { httpStatus: 200, code: null, requestId: "req_scripted" };
    bench.stripe.script(json(200, intent({ status: "succeeded", amount_received: 4200 }), headers));
    expect(await send("capture", RE_SEND)).toMatchObject({
      type: "object",
      replayed,
      charge: { id: "pi_1", status: "succeeded", amountCaptured: 4200 },
      evidence,
    });
    bench.stripe.script(json(200, intent({ status: "canceled" }), headers));
    expect(await send("cancel", RE_SEND)).toMatchObject({
      type: "object",
      replayed,
      charge: { status: "canceled" },
    });
    bench.stripe.script(json(200, refund({ status: "pending" }), headers));
    expect(await send("refund", RE_SEND)).toMatchObject({
      type: "refund",
      replayed,
      refund: { id: "re_1", chargeId: "pi_1", status: "pending", amount: 1500 },
      evidence,
    });
  });

  it("shows a refund that names no PaymentIntent", async () => {
    bench.stripe.script(json(200, refund({ payment_intent: null })));
    expect(await send("refund", FIRST_SEND)).toMatchObject({
      type: "refund",
      refund: { id: "re_1", chargeId: null },
    });
  });
});
