import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../src/sandbox/index.js";
import { bodyOf, CREATE, created, type ErrorBody, send, stripeFor, thrown } from "./support.js";

const PATH = "/v1/payment_intents";
const DAY_MS = 24 * 60 * 60 * 1000;

let sandbox: Sandbox;

beforeEach(async () => {
  sandbox = await startSandbox();
});
afterEach(() => sandbox.stop());

describe("a repeated request", () => {
  it("gets the first body byte for byte, marked as a replay, and makes nothing", async () => {
    const first = await send(sandbox, { path: PATH, body: `${CREATE}1`, key: "k" });
    const again = await send(sandbox, { path: PATH, body: `${CREATE}1`, key: "k" });
    expect(again.text).toBe(first.text);
    expect(first.headers["idempotent-replayed"]).toBeUndefined();
    expect(again.headers["idempotent-replayed"]).toBe("true");
    expect(again.headers["original-request"]).toBe(first.headers["request-id"]);
    expect(again.headers["request-id"]).not.toBe(first.headers["request-id"]);
    expect((await sandbox.control.counts()).payment_intents).toBe(1);
  });

  it("gets the old body although the object has moved on", async () => {
    const made = await send(sandbox, { path: PATH, body: `${CREATE}1`, key: "k" });
    const stripe = stripeFor(sandbox);
    await stripe.paymentIntents.confirm(bodyOf(made).id);
    const again = await send(sandbox, { path: PATH, body: `${CREATE}1`, key: "k" });
    expect(bodyOf(again).status).toBe("requires_confirmation");
    expect((await stripe.paymentIntents.retrieve(bodyOf(made).id)).status).toBe("succeeded");
  });

  it("is the same in another order of its parameters", async () => {
    await send(sandbox, {
      path: PATH,
      body: "amount=4200&currency=usd&metadata[a]=1&metadata[b]=2",
      key: "k",
    });
    const again = await send(sandbox, {
      path: PATH,
      body: "metadata[b]=2&currency=usd&metadata[a]=1&amount=4200",
      key: "k",
    });
    expect(again.headers["idempotent-replayed"]).toBe("true");
  });

  it("replays a decline too, without trying the card again", async () => {
    const made = await created(sandbox, "pm_card_visa_chargeDeclined");
    const confirm = { path: `${PATH}/${made.id}/confirm`, key: "c" };
    const first = await send(sandbox, confirm);
    const again = await send(sandbox, confirm);
    expect([first.status, again.status]).toEqual([402, 402]);
    expect(again.text).toBe(first.text);
    expect((await sandbox.control.getPaymentIntent(made.id)).charges).toHaveLength(1);
  });

  it("replays what the state guard said", async () => {
    const made = await created(sandbox);
    await stripeFor(sandbox).paymentIntents.cancel(made.id);
    const confirm = { path: `${PATH}/${made.id}/confirm`, key: "c" };
    expect((await send(sandbox, confirm)).status).toBe(400);
    const again = await send(sandbox, confirm);
    expect(again.status).toBe(400);
    expect(again.headers["idempotent-replayed"]).toBe("true");
  });
});

describe("a key with another request", () => {
  it("is a 400 idempotency_error for other parameters and for another endpoint", async () => {
    const made = bodyOf(await send(sandbox, { path: PATH, body: `${CREATE}1`, key: "k" }));
    for (const other of [
      { path: PATH, body: `${CREATE}2`, key: "k" },
      { path: `${PATH}/${made.id}/confirm`, key: "k" },
    ]) {
      const answer = await send(sandbox, other);
      expect(answer.status).toBe(400);
      expect(bodyOf<ErrorBody>(answer).error.type).toBe("idempotency_error");
    }
    const error = await thrown(
      stripeFor(sandbox).paymentIntents.confirm(made.id, {}, { idempotencyKey: "k" }),
    );
    expect(error.type).toBe("StripeIdempotencyError");
    expect(
      (await send(sandbox, { path: PATH, body: `${CREATE}1`, key: "k" })).headers["idempotent-replayed"],
    ).toBe("true");
  });
});

describe("what is not saved", () => {
  it.each([
    ["a validation failure", "currency=usd"],
    ["an unknown parameter", "amount=4200&currency=usd&nonsense=1"],
    ["an amount too small", "amount=1&currency=usd"],
  ])("%s leaves the key free", async (_, body) => {
    expect((await send(sandbox, { path: PATH, body, key: "k" })).status).toBe(400);
    const fixed = await send(sandbox, { path: PATH, body: `${CREATE}1`, key: "k" });
    expect(fixed.status).toBe(200);
    expect(fixed.headers["idempotent-replayed"]).toBeUndefined();
  });

  it("a lock timeout leaves the key free, and reads are never locked", async () => {
    const made = await created(sandbox);
    await sandbox.control.addFault({
      match: { call: "payment_intents.confirm" },
      fault: { type: "hang", effect: "later", arrival: "executing" },
    });
    const running = send(sandbox, { path: `${PATH}/${made.id}/confirm`, key: "c1" });
    await sandbox.control.waitForHeld();
    const locked = await send(sandbox, { path: `${PATH}/${made.id}/cancel`, key: "x" });
    expect(locked.status).toBe(429);
    expect(locked.headers["stripe-should-retry"]).toBe("true");
    expect(bodyOf<ErrorBody>(locked).error.code).toBe("lock_timeout");
    expect((await send(sandbox, { method: "GET", path: `${PATH}/${made.id}` })).status).toBe(200);
    await sandbox.control.release();
    expect(bodyOf(await running).status).toBe("succeeded");
    const after = await send(sandbox, { path: `${PATH}/${made.id}/cancel`, key: "x" });
    expect(bodyOf<ErrorBody>(after).error.code).toBe("payment_intent_unexpected_state");
  });

  it("a key on a GET has no effect", async () => {
    const made = await created(sandbox);
    const read = { method: "GET", path: `${PATH}/${made.id}`, key: "g" } as const;
    await send(sandbox, read);
    await stripeFor(sandbox).paymentIntents.cancel(made.id);
    expect(bodyOf(await send(sandbox, read)).status).toBe("canceled");
    expect((await sandbox.control.listIdempotencyKeys()).map((each) => each.key)).not.toContain("g");
  });

  it("a key longer than 255 characters is a 400", async () => {
    expect((await send(sandbox, { path: PATH, body: `${CREATE}1`, key: "k".repeat(256) })).status).toBe(400);
    expect((await send(sandbox, { path: PATH, body: `${CREATE}1`, key: "k".repeat(255) })).status).toBe(200);
  });
});

describe("a request that still runs", () => {
  it("answers 409 in use to its key, then replays its own result", async () => {
    await sandbox.control.addFault({
      match: { idempotency_key: "k" },
      fault: { type: "hang", effect: "later" },
    });
    const running = send(sandbox, { path: PATH, body: `${CREATE}1`, key: "k" });
    await sandbox.control.waitForHeld();
    const second = await send(sandbox, { path: PATH, body: `${CREATE}1`, key: "k" });
    expect(second.status).toBe(409);
    expect(bodyOf<ErrorBody>(second).error.code).toBe("idempotency_key_in_use");
    await sandbox.control.advanceClock(DAY_MS * 2);
    expect((await send(sandbox, { path: PATH, body: `${CREATE}1`, key: "k" })).status).toBe(409);
    await sandbox.control.release();
    const first = await running;
    expect(first.status).toBe(200);
    await sandbox.control.setClock(new Date());
    expect((await send(sandbox, { path: PATH, body: `${CREATE}1`, key: "k" })).text).toBe(first.text);
    expect((await sandbox.control.counts()).payment_intents).toBe(1);
  });
});

describe("pruning", () => {
  it("forgets a key at 24 h and not a moment before", async () => {
    const first = bodyOf(await send(sandbox, { path: PATH, body: `${CREATE}1`, key: "k" }));
    await sandbox.control.advanceClock(DAY_MS - 60_000);
    const before = await send(sandbox, { path: PATH, body: `${CREATE}1`, key: "k" });
    expect(bodyOf(before).id).toBe(first.id);
    await sandbox.control.advanceClock(60_000);
    const after = await send(sandbox, { path: PATH, body: `${CREATE}1`, key: "k" });
    expect(after.headers["idempotent-replayed"]).toBeUndefined();
    expect(bodyOf(after).id).not.toBe(first.id);
    expect((await sandbox.control.counts()).payment_intents).toBe(2);
  });

  it("happens at once on request, for one key", async () => {
    const first = bodyOf(await send(sandbox, { path: PATH, body: `${CREATE}1`, key: "k" }));
    const other = bodyOf(await send(sandbox, { path: PATH, body: `${CREATE}1`, key: "other" }));
    expect(await sandbox.control.pruneIdempotencyKeys("k")).toBe(1);
    expect(bodyOf(await send(sandbox, { path: PATH, body: `${CREATE}1`, key: "k" })).id).not.toBe(first.id);
    expect(bodyOf(await send(sandbox, { path: PATH, body: `${CREATE}1`, key: "other" })).id).toBe(other.id);
  });

  it("clears old keys away as new ones come", async () => {
    for (let at = 0; at < 5; at += 1)
      await send(sandbox, { path: PATH, body: `${CREATE}1`, key: `old${at}` });
    await sandbox.control.advanceClock(DAY_MS);
    await send(sandbox, { path: PATH, body: `${CREATE}1`, key: "new" });
    expect((await sandbox.control.listIdempotencyKeys()).map((each) => each.key)).toEqual(["new"]);
  });
});
