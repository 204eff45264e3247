import { expect, it } from "vitest";
import { DECLINED, newKey } from "../support/api-client.js";
import { unaskedSends } from "../support/books.js";
import { describeWithFaults } from "../support/e2e-target.js";
import {
  AUTOMATIC,
  cancel,
  capture,
  entriesOf,
  MANUAL,
  made,
  NEEDS_CUSTOMER,
  objectIdOf,
  outcomeOf,
  refund,
} from "../support/merchant.js";
import { usePair } from "../support/pair.js";
import { untilEnded, untilStatus } from "../support/system.js";

describeWithFaults("a capture, at two APIs and two workers", () => {
  const pair = usePair();

  it("that is not valid is 4xx without a call, and changes nothing", async () => {
    const payment = await made(pair.client, MANUAL);
    const refusals: readonly (readonly [string, string])[] = [
      ['{"amount":10001}', "422 amount_too_large"],
      ['{"amount":0}', "400 validation_failed"],
      ['{"amount":-1}', "400 validation_failed"],
      ['{"amount":1.5}', "400 validation_failed"],
      ['{"amount":"10"}', "400 validation_failed"],
      ['{"amount":null}', "400 validation_failed"],
      ['{"amount":1e400}', "400 validation_failed"],
      ['{"amount":100,"currency":"usd"}', "400 validation_failed"],
      ['{"amount":1,"amount":2}', "400 malformed_request"],
    ];
    for (const [body, refusal] of refusals) {
      expect([body, outcomeOf(await capture(pair.client, payment.id, body))]).toEqual([body, refusal]);
    }
    expect(await pair.client.payment(payment.id)).toEqual(payment);
    expect(await pair.sentFor(objectIdOf(payment))).toEqual([]);
    await pair.expectOneTruth(payment.id);
  });

  it("in a state that does not allow it is 409, names the state and makes no call", async () => {
    const paid = await made(pair.client, AUTOMATIC);
    const acting = await made(pair.client, NEEDS_CUSTOMER);
    const declined = (await pair.client.pay(DECLINED)).json.payment?.id ?? "";
    await untilEnded(pair.client, declined);
    const canceled = await made(pair.client, MANUAL);
    await cancel(pair.client, canceled.id);
    const atWork = await pair.stuck(MANUAL);
    const captures = () => pair.control.listRequests({ call: "payment_intents.capture" });
    const before = (await captures()).length;
    for (const [id, state] of [
      [paid.id, "succeeded"],
      [acting.id, "requires_action"],
      [declined, "failed"],
      [canceled.id, "canceled"],
      [atWork, "processing"],
    ] as const) {
      const key = newKey();
      const refused = await capture(pair.client, id, undefined, { key });
      expect([state, outcomeOf(refused)]).toEqual([state, "409 invalid_state"]);
      expect(refused.json["detail"]).toContain(state);
      expect(refused.headers.get("Retry-After")).toBeNull();
      const replayed = await capture(pair.apis[1].client, id, undefined, { key });
      expect([replayed.text, replayed.headers.get("Idempotent-Replayed")]).toEqual([refused.text, "true"]);
    }
    expect(await captures()).toHaveLength(before);
    await pair.control.clearFaults();
    await untilStatus(pair.client, atWork, ["authorized"]);
    await pair.expectOneTruth(paid.id, acting.id, declined, canceled.id, atWork);
  });

  it("of a part takes exactly that, releases the rest, and is the last word", async () => {
    const payment = await made(pair.client, MANUAL);
    const taken = await capture(pair.client, payment.id, { amount: 6_000 });
    expect([taken.status, taken.json.status]).toEqual([200, "succeeded"]);
    expect(taken.json).toMatchObject({
      amount_captured: 6_000,
      amount_capturable: 0,
      amount_refundable: 6_000,
    });
    expect(outcomeOf(await capture(pair.client, payment.id, { amount: 1_000 }))).toBe("409 invalid_state");
    expect(outcomeOf(await cancel(pair.client, payment.id))).toBe("409 invalid_state");
    const sent = await pair.sentFor(objectIdOf(payment));
    expect(sent.map((one) => [one.call, one.parameters["amount_to_capture"]])).toEqual([
      ["payment_intents.capture", "6000"],
    ]);
    expect(outcomeOf(await refund(pair.client, payment.id, { amount: 6_001 }))).toBe("422 amount_too_large");
    const held = (await entriesOf(pair.client, payment.id)).filter(
      (entry) => entry.debit_account === "authorized_contra",
    );
    expect(held.map((entry) => entry.amount).toSorted()).toEqual([4_000, 6_000]);
    await pair.expectOneTruth(payment.id);
  });

  it("of everything is the same request whether it says the amount, spells it 1e4, or leaves the body out", async () => {
    const payment = await made(pair.client, MANUAL);
    const key = newKey();
    const taken = await capture(pair.client, payment.id, undefined, { key });
    expect(taken.status).toBe(200);
    for (const body of ["{}", '{"amount":10000}', '{ "amount": 1e4 }', '{"amount":10000.0}']) {
      const again = await capture(pair.apis[1].client, payment.id, body, { key });
      expect([body, again.text]).toEqual([body, taken.text]);
      expect(again.headers.get("Idempotent-Replayed")).toBe("true");
    }
    expect(outcomeOf(await capture(pair.client, payment.id, { amount: 9_999 }, { key }))).toBe(
      "422 idempotency_key_reused",
    );
    expect(await pair.sentFor(objectIdOf(payment))).toHaveLength(1);
  });

  it.each(["jpy", "kwd"])("of a part in %s is that many minor units, everywhere", async (currency) => {
    const payment = await made(pair.client, { ...MANUAL, currency });
    const taken = await capture(pair.client, payment.id, { amount: 5_120 });
    expect([taken.status, taken.json.amount_captured]).toEqual([200, 5_120]);
    const object = await pair.control.getPaymentIntent(objectIdOf(payment));
    expect(object.payment_intent.amount_received).toBe(5_120);
    const sale = (await entriesOf(pair.client, payment.id)).find((entry) => entry.credit_account === "sales");
    expect(sale).toMatchObject({ amount: 5_120, currency });
  });

  it("of an amount that the provider cannot carry exactly is 422 before anything is sent", async () => {
    const payment = await made(pair.client, { ...MANUAL, currency: "kwd" });
    const key = newKey();
    const uneven = await capture(pair.client, payment.id, { amount: 5_125 }, { key });
    expect(outcomeOf(uneven)).toBe("422 amount_not_supported");
    expect(await pair.sentFor(objectIdOf(payment))).toEqual([]);
    expect((await capture(pair.client, payment.id, { amount: 5_120 }, { key })).status).toBe(200);
  });

  it("keeps its provider key and its parameters over lost answers and refused sends", async () => {
    const payment = await made(pair.client, MANUAL);
    const call = "payment_intents.capture";
    await pair.disturb(call, { fault: { type: "error", status: 429, code: "lock_timeout" } });
    await pair.disturb(call, { fault: { type: "reset", effect: "none" } });
    await pair.disturb(call, { fault: { type: "error", status: 503 } });
    await pair.disturb(call, { fault: { type: "reset", effect: "applied" } });
    const key = newKey();
    const taken = await capture(pair.client, payment.id, { amount: 7_000 }, { key, prefer: "wait=20" });
    expect([taken.status, taken.json.amount_captured]).toEqual([200, 7_000]);
    const sent = await pair.sentFor(objectIdOf(payment));
    expect(sent.length).toBeGreaterThanOrEqual(4);
    expect(new Set(sent.map((one) => one.idempotency_key)).size).toBe(1);
    expect(new Set(sent.map((one) => JSON.stringify(one.parameters))).size).toBe(1);
    expect((await capture(pair.client, payment.id, { amount: 7_000 }, { key })).text).toBe(taken.text);
    await pair.expectOneTruth(payment.id);
  });

  it.each([
    ["hang", "applied"],
    ["hang", "none"],
    ["garbage", "applied"],
    ["cut_off", "applied"],
    ["empty", "applied"],
    ["html", "applied"],
    ["error", "applied"],
    ["stored_error", "none"],
  ] as const)("whose answer is lost (%s, effect %s) comes to one capture", async (type, effect) => {
    const payment = await made(pair.client, MANUAL);
    await pair.disturb("payment_intents.capture", { fault: { type, effect } });
    const key = newKey();
    const first = await capture(pair.client, payment.id, { amount: 6_000 }, { key, prefer: "wait=1" });
    expect([200, 202]).toContain(first.status);
    expect(first.text).not.toContain("<");
    const taken = await capture(pair.client, payment.id, { amount: 6_000 }, { key, prefer: "wait=20" });
    expect([taken.status, taken.json.amount_captured]).toEqual([200, 6_000]);
    await pair.expectOneTruth(payment.id);
  });

  it("that is under way answers 202, says why it waits, and 409 to its own key and to another", async () => {
    const payment = await made(pair.client, MANUAL);
    const key = newKey();
    await pair.disturb("payment_intents.capture", {
      fault: { type: "reset", effect: "later", arrival: "in_network" },
    });
    const first = await capture(pair.client, payment.id, undefined, { key, prefer: "respond-async" });
    expect([first.status, first.json.status]).toEqual([202, "authorized"]);
    expect(first.headers.get("Location")).toBe(`/v1/payments/${payment.id}`);
    expect(Number(first.headers.get("Retry-After"))).toBeGreaterThan(0);
    const taken = await capture(pair.client, payment.id, undefined, { key, prefer: "wait=20" });
    expect(taken.status).toBe(200);
    // The first send arrives now: it is a replay at the provider, or finds the object captured.
    await pair.control.release();
    await pair.expectOneTruth(payment.id);
  });

  it("beside another capture or cancel under way is 409 operation_in_progress, and its key stays free", async () => {
    const payment = await made(pair.client, MANUAL);
    const [first, other] = [newKey(), newKey()];
    await pair.disturb("payment_intents.capture", { latency_ms: 500, fault: { type: "slow" } });
    const running = capture(pair.client, payment.id, { amount: 6_000 }, { key: first });
    await pair.control.waitForRequests({
      filter: { call: "payment_intents.capture", object_id: objectIdOf(payment) },
    });
    for (const refused of [
      await capture(pair.apis[1].client, payment.id, undefined, { key: other }),
      await cancel(pair.apis[1].client, payment.id, undefined, { key: other }),
    ]) {
      expect(outcomeOf(refused)).toBe("409 operation_in_progress");
      expect(Number(refused.headers.get("Retry-After"))).toBeGreaterThan(0);
      expect(refused.json.payment?.id).toBe(payment.id);
    }
    const twice = await capture(pair.apis[1].client, payment.id, { amount: 6_000 }, { key: first });
    expect(outcomeOf(twice)).toBe("409 idempotency_key_in_progress");
    expect((await running).status).toBe(200);
    const key = await pair.client.get(`/v1/idempotency_keys/${other}?operation=payments.capture`);
    expect(key.status).toBe(404);
    expect(outcomeOf(await capture(pair.client, payment.id, undefined, { key: other }))).toBe(
      "409 invalid_state",
    );
    await pair.expectOneTruth(payment.id);
  });

  it("of what was captured at the dashboard is 200 where the amounts agree, else 409 with the truth", async () => {
    const [same, less] = [await made(pair.client, MANUAL), await made(pair.client, MANUAL)];
    await pair.control.dashboard.capture(objectIdOf(same));
    await pair.control.dashboard.capture(objectIdOf(less), 4_000);
    expect((await capture(pair.client, same.id)).status).toBe(200);
    const refused = await capture(pair.client, less.id);
    expect(outcomeOf(refused)).toBe("409 invalid_state");
    expect(refused.json.payment).toMatchObject({ status: "succeeded", amount_captured: 4_000 });
    await pair.expectOneTruth(same.id, less.id);
  });

  it("while the provider is away past the budget is 503, and the same key captures once it is back", async () => {
    const env = { ATTEMPT_RETRY_BUDGET_MS: "1000" };
    await pair.workers(env);
    const { client } = await pair.system.api(env);
    const payment = await made(client, MANUAL);
    await pair.control.closeListener();
    const key = newKey();
    const refused = await capture(client, payment.id, undefined, { key, prefer: "wait=20" });
    await pair.control.openListener();
    expect(outcomeOf(refused)).toBe("503 provider_unavailable");
    expect(Number(refused.headers.get("Retry-After"))).toBeGreaterThan(0);
    expect(await client.payment(payment.id)).toMatchObject({
      status: "authorized",
      amount_capturable: 10_000,
    });
    const taken = await capture(client, payment.id, undefined, { key });
    expect([taken.status, taken.headers.get("Idempotent-Replayed")]).toEqual([200, null]);
    await pair.expectOneTruth(payment.id);
    await pair.workers();
  });

  it("asks before it sends again, in all of this", async () => {
    expect(unaskedSends(await pair.control.listRequests())).toEqual([]);
  });
});
