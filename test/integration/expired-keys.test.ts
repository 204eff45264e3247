import { describe, expect, test } from "vitest";
import { purgeExpired } from "../../src/operations/purge-expired.js";
import { documentOf, type Harness, newKey, pay } from "../support/harness.js";
import { HASTY, useStage, wireOf } from "../support/stage.js";

const stage = useStage();

async function expire(harness: Harness): Promise<void> {
  await harness.deps.db.sql`update idempotency_keys set expires_at = now() where expires_at is not null`;
}

describe.each([
  { when: "not purged yet", purged: false },
  { when: "purged", purged: true },
])("a key that has expired and is $when", ({ purged }) => {
  async function payAndExpire(input = {}) {
    const harness = await stage.start({ workers: ["attempts"] });
    const key = newKey();
    const first = await pay(harness, { key, input });
    await expire(harness);
    expect(purged ? await purgeExpired(harness.deps) : 0).toBe(purged ? 1 : 0);
    return { harness, key, id: documentOf(first).id, wire: await wireOf(harness) };
  }

  test("names its payment and charges nothing", async () => {
    const { harness, key, id, wire } = await payAndExpire();
    for (const explicit of [false, true]) {
      await expect(pay(harness, { key, explicit })).rejects.toMatchObject({
        code: "idempotency_key_expired",
        extra: { payment: { id, status: "succeeded" } },
      });
    }
    expect(await wireOf(harness)).toEqual(wire);
  });

  test("with the same order id is still told of as expired: the key is looked at first", async () => {
    const input = { merchant_order_id: "order-1" };
    const { harness, key, id, wire } = await payAndExpire(input);
    await expect(pay(harness, { key, input })).rejects.toMatchObject({
      code: "idempotency_key_expired",
      extra: { payment: { id } },
    });
    await expect(pay(harness, { input })).rejects.toMatchObject({
      code: "merchant_order_id_taken",
      extra: { payment: { id } },
    });
    expect(await wireOf(harness)).toEqual(wire);
  });

  test("with another request charges nothing either", async () => {
    const { harness, key, id, wire } = await payAndExpire();
    await expect(pay(harness, { key, input: { amount: 1 } })).rejects.toMatchObject({
      code: "idempotency_key_expired",
      extra: { payment: { id } },
    });
    expect(await wireOf(harness)).toEqual(wire);
  });
});

test("a purged key that ran several times names the payment of its last run", async () => {
  const harness = await stage.start({
    env: { ...HASTY, ATTEMPT_RETRY_BUDGET_MS: "1000" },
    workers: ["attempts"],
  });
  const key = newKey();
  await harness.sandbox.control.closeListener();
  await expect(pay(harness, { key })).rejects.toMatchObject({ code: "provider_unavailable" });
  await harness.sandbox.control.openListener();
  const second = await pay(harness, { key });
  await expire(harness);
  await purgeExpired(harness.deps);
  await expect(pay(harness, { key })).rejects.toMatchObject({
    code: "idempotency_key_expired",
    extra: { payment: { id: documentOf(second).id } },
  });
});

test("a key that was never used is not called expired for another tenant's sake", async () => {
  const harness = await stage.start({ workers: ["attempts"] });
  const key = newKey();
  await pay(harness, { key });
  await expire(harness);
  await purgeExpired(harness.deps);
  const foreign = { ...harness, caller: { ...harness.caller, tenantId: "ten_other" } };
  expect(documentOf(await pay(foreign, { key })).status).toBe("succeeded");
});

test("a hundred replays across the moment of expiry and the purge are replays or told of, never lost", async () => {
  const harness = await stage.start({
    env: { IDEMPOTENCY_RETENTION_HOURS: "0.0001", PURGE_INTERVAL_MS: "10" },
  });
  const key = newKey();
  const first = await pay(harness, { key });
  const seen = new Set<string>();
  const isOver = async () => {
    const rows = await harness.deps.db.sql`select 1 from idempotency_keys`;
    return rows.length === 0;
  };
  for (let round = 0; seen.size < 2 || !(await isOver()); round += 1) {
    const answers = await Promise.allSettled(Array.from({ length: 10 }, () => pay(harness, { key })));
    for (const answer of answers) {
      if (answer.status === "fulfilled") expect(documentOf(answer.value)).toEqual(documentOf(first));
      seen.add(
        answer.status === "fulfilled" ? "replayed" : String((answer.reason as { code?: string }).code),
      );
    }
    if (round > 1_000) throw new Error(`the key never expired: ${[...seen].join()}`);
  }
  expect([...seen].toSorted()).toEqual(["idempotency_key_expired", "replayed"]);
});
