import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DECLINED, newKey, VISA } from "../support/api-client.js";
import { describeWithFaults } from "../support/e2e-target.js";
import { expectSettled } from "../support/settle.js";
import { type Api, System, untilStatus } from "../support/system.js";

/** Runs against Stripe's own test mode too, with STRIPE_SECRET_KEY=sk_test_… in the environment of the test run. */
describe("a payment over HTTP", () => {
  let system: System;
  let api: Api;

  beforeAll(async () => {
    system = await System.start();
    api = await system.api();
    await system.worker();
  });
  afterAll(() => system.drop());

  it("succeeds with 201, and replays byte for byte under its key", async () => {
    const key = newKey();
    const order = `order-${newKey()}`;
    const body = { ...VISA, merchant_order_id: order, metadata: { b: "1", "10": "ä", "9": "3" } };
    const paid = await api.client.pay(body, { key, prefer: "wait=30" });
    expect(paid.status, paid.text).toBe(201);
    expect(paid.json).toMatchObject({
      ...body,
      object: "payment",
      status: "succeeded",
      amount_captured: 4200,
      provider: "stripe",
    });
    expect(paid.json.provider_payment_id).toMatch(/^pi_/);
    const location = paid.headers.get("Location");
    expect(location).toBe(`/v1/payments/${paid.json.id ?? ""}`);
    expect(Date.parse(paid.headers.get("Idempotency-Key-Expires") ?? "")).toBeGreaterThan(Date.now());
    expect(paid.headers.get("Idempotent-Replayed")).toBeNull();

    const spelled = `{"currency":"USD", "amount":4200.0, "payment_method":"pm_card_visa", "capture_method":"automatic",
      "metadata":{"9":"3","10":"\\u00e4","b":"1"}, "merchant_order_id":"${order}"}`;
    const replayed = await api.client.pay(spelled, { key: `"${key}"` });
    expect([replayed.status, replayed.text]).toEqual([201, paid.text]);
    expect(replayed.headers.get("Idempotent-Replayed")).toBe("true");
    for (const name of ["Content-Type", "Location"])
      expect(replayed.headers.get(name)).toBe(paid.headers.get(name));
    expect(replayed.headers.get("X-Request-Id")).not.toBe(paid.headers.get("X-Request-Id"));
  });

  it("is declined with 402, and the decline replays", async () => {
    const key = newKey();
    const declined = await api.client.pay(DECLINED, { key, prefer: "wait=30" });
    expect([declined.status, declined.json.code], declined.text).toEqual([402, "payment_declined"]);
    expect(declined.json.payment).toMatchObject({ status: "failed", failure: { code: "card_declined" } });
    const replayed = await api.client.pay(DECLINED, { key });
    expect([replayed.status, replayed.text]).toEqual([402, declined.text]);
    expect(replayed.headers.get("Idempotent-Replayed")).toBe("true");
  });

  it("is authorized alone with capture_method manual", async () => {
    const paid = await api.client.pay({ ...VISA, capture_method: "manual" }, { prefer: "wait=30" });
    expect([paid.status, paid.json.status]).toEqual([201, "authorized"]);
    expect(paid.json).toMatchObject({ amount_capturable: 4200, amount_captured: 0 });
  });

  it("answers 201 with what the customer must do", async () => {
    const body = {
      ...VISA,
      payment_method: "pm_card_authenticationRequired",
      return_url: "https://shop.example/back",
    };
    const paid = await api.client.pay(body, { prefer: "wait=30" });
    expect([paid.status, paid.json.status], paid.text).toEqual([201, "requires_action"]);
    expect(paid.json["next_action"]).not.toBeNull();
  });

  it("is rejected with 402 where the provider finds the request itself wrong", async () => {
    const rejected = await api.client.pay(
      { ...VISA, payment_method: "pm_no_such_card" },
      { prefer: "wait=30" },
    );
    expect([rejected.status, rejected.json.code], rejected.text).toEqual([402, "payment_rejected"]);
    expect(rejected.json.payment?.status).toBe("failed");
  });

  it("answers 202 at once with respond-async, and GET, list and timeline show it through", async () => {
    const order = `order-${newKey()}`;
    const key = newKey();
    const accepted = await api.client.pay(
      { ...VISA, merchant_order_id: order },
      { key, prefer: "respond-async" },
    );
    expect([accepted.status, accepted.json.status]).toEqual([202, "processing"]);
    expect(accepted.headers.get("Preference-Applied")).toBe("respond-async");
    expect(Number(accepted.headers.get("Retry-After"))).toBeGreaterThan(0);
    const id = accepted.json.id ?? "";
    const paid = await untilStatus(api.client, id, ["succeeded"]);
    expect(paid.amount_captured).toBe(4200);

    const listed = await api.client.get(`/v1/payments?merchant_order_id=${order}&status=succeeded`);
    expect([listed.status, listed.json["has_more"], listed.json.data?.map((one) => one.id)]).toEqual([
      200,
      false,
      [id],
    ]);
    const timeline = await api.client.timeline(id);
    const transitions = timeline.filter((entry) => entry.kind === "transition");
    expect(transitions.map(({ from, to }) => [from, to])).toEqual([
      [null, "processing"],
      ["processing", "succeeded"],
    ]);
    const record = await api.client.get(`/v1/idempotency_keys/${key}?operation=payments.create`);
    expect(record.json).toMatchObject({
      key,
      state: "completed",
      resource_id: id,
      run: 1,
      response_status: 201,
    });
  });

  it("waits as Prefer says, and tells a duplicate without one that the first still runs", async () => {
    const key = newKey();
    const first = api.client.pay(VISA, { key, prefer: "wait=30" });
    const answers = await Promise.all([
      first,
      ...[1, 2, 3].map(() => api.client.pay(VISA, { key, prefer: "wait=30" })),
    ]);
    expect(answers.map((answer) => answer.status)).toEqual([201, 201, 201, 201]);
    expect(new Set(answers.map((answer) => answer.text)).size).toBe(1);
  });

  it("refuses the key with another request, the order id with another key, and amounts the provider cannot carry", async () => {
    const key = newKey();
    const order = `order-${newKey()}`;
    const paid = await api.client.pay({ ...VISA, merchant_order_id: order }, { key, prefer: "wait=30" });
    const reused = await api.client.pay({ ...VISA, amount: 4300, merchant_order_id: order }, { key });
    expect([reused.status, reused.json.code]).toEqual([422, "idempotency_key_reused"]);
    const taken = await api.client.pay({ ...VISA, merchant_order_id: order });
    expect([taken.status, taken.json.code, taken.json.payment?.id]).toEqual([
      409,
      "merchant_order_id_taken",
      paid.json.id,
    ]);
    const uneven = await api.client.pay({ ...VISA, amount: 5125, currency: "kwd" });
    expect([uneven.status, uneven.json.code]).toEqual([422, "amount_not_supported"]);
  });

  it("names the field of bad input, and the key is not used up", async () => {
    const key = newKey();
    const bad = await api.client.pay({ ...VISA, amount: "4200" }, { key });
    expect([bad.status, bad.json.code, bad.json.errors?.[0]?.pointer]).toEqual([
      400,
      "validation_failed",
      "/amount",
    ]);
    expect(bad.headers.get("Content-Type")).toBe("application/problem+json");
    const duplicate = await api.client.pay(
      '{"amount":1,"amount":2,"currency":"usd","payment_method":"pm_card_visa"}',
      { key },
    );
    expect([duplicate.status, duplicate.json.code]).toEqual([400, "malformed_request"]);
    const missing = await api.client.request("POST", "/v1/payments", {
      body: JSON.stringify(VISA),
      headers: { "Content-Type": "application/json" },
    });
    expect([missing.status, missing.json.code]).toEqual([400, "idempotency_key_missing"]);
    const paid = await api.client.pay(VISA, { key, prefer: "wait=30" });
    expect(paid.status).toBe(201);
  });

  it("is seen by its own tenant alone, and by keys with the scope alone", async () => {
    const paid = await api.client.pay(VISA, { prefer: "wait=30" });
    const path = `/v1/payments/${paid.json.id ?? ""}`;
    const stranger = await system.command<{ id: string }>("tenants", "create", "--name", "stranger");
    const clientWith = async (tenant: string, ...scopes: readonly string[]) => {
      const { secret } = await system.command<{ secret: string }>(
        "keys",
        "create",
        "--tenant",
        tenant,
        ...scopes,
      );
      return Object.assign(Object.create(api.client) as typeof api.client, { secret });
    };
    const foreign = await clientWith(stranger.id);
    const unknown = await foreign.get("/v1/payments/pay_00000000000000000000000000000000");
    const hidden = await foreign.get(path);
    expect([hidden.status, hidden.json.code]).toEqual([404, "not_found"]);
    expect(hidden.json["detail"]).toBe(unknown.json["detail"]);
    expect((await foreign.get("/v1/payments")).json.data).toEqual([]);

    const reader = await clientWith(system.tenantId, "--scopes", "payments:read");
    expect((await reader.get(path)).status).toBe(200);
    expect((await reader.pay(VISA)).status).toBe(403);
    const nobody = Object.assign(Object.create(api.client) as typeof api.client, { secret: null });
    const refused = await nobody.get(path);
    expect([refused.status, refused.headers.get("WWW-Authenticate")?.split(" ")[0]]).toEqual([401, "Bearer"]);
  });
});

describeWithFaults("what the provider saw of a payment", () => {
  it("is one object, made unconfirmed and then confirmed, under keys of the attempt's id alone", async () => {
    const system = await System.start();
    const api = await system.api();
    await system.worker();
    const paid = await api.client.pay({ ...VISA, amount: 500, currency: "jpy" });
    expect(paid.status).toBe(201);
    await expectSettled(api.client, system.control, [paid.json.id ?? ""]);
    const [attempt] = (await api.client.timeline(paid.json.id ?? "")).map((entry) => entry.attempt_id);
    const [object] = await system.control.listPaymentIntents();
    expect(object?.payment_intent).toMatchObject({ amount: 500, currency: "jpy" });
    expect(object?.payment_intent.metadata).toEqual({
      payment_attempt_id: attempt,
      tenant_id: system.tenantId,
    });
    const sends = (await system.control.listRequests({ method: "POST" })).map((sent) => [
      sent.call,
      sent.idempotency_key,
    ]);
    expect(sends).toEqual([
      ["payment_intents.create", `payment-attempt:${attempt ?? ""}`],
      ["payment_intents.confirm", `payment-attempt:${attempt ?? ""}:confirm`],
    ]);
    await system.drop();
  });
});
