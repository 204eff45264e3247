import { describe, expect, test } from "vitest";
import { purgeExpired } from "../../src/operations/purge-expired.js";
import { documentOf, type Harness, newKey, pay } from "../support/harness.js";
import { HASTY, useStage } from "../support/stage.js";

const stage = useStage();

/** Finished keys of long ago, without payments: what the purge alone looks at. */
async function addFinishedKeys(harness: Harness, count: number): Promise<void> {
  await harness.deps.db.sql`
    insert into idempotency_keys (tenant_id, operation, key, fingerprint, state, resource_id, request_id,
                                  response_status, response_body, completed_at, expires_at)
    select 'ten_old', 'payments.create', 'old-' || n, 'v1:0', 'completed', 'pay_old', 'req_old', 201, '{}',
           now() - interval '8 days', now() - (n || ' minutes')::interval
      from generate_series(1, ${count}::int) n`;
}

async function oldKeysOf(harness: Harness): Promise<string[]> {
  const rows = await harness.deps.db.sql<{ key: string }[]>`
    select key from idempotency_keys where tenant_id = 'ten_old' order by expires_at`;
  return rows.map((row) => row.key);
}

async function removeOldKeys(harness: Harness): Promise<void> {
  await harness.deps.db.sql`delete from idempotency_keys where tenant_id = 'ten_old'`;
}

describe("the purge", () => {
  test("deletes the oldest expired keys, no more than a batch at a time, and says how many", async () => {
    const harness = await stage.start({ workers: [], env: { PURGE_BATCH_SIZE: "3" } });
    await addFinishedKeys(harness, 7);
    expect(await purgeExpired(harness.deps)).toBe(3);
    expect(await oldKeysOf(harness)).toEqual(["old-4", "old-3", "old-2", "old-1"]);
    expect([await purgeExpired(harness.deps), await purgeExpired(harness.deps)]).toEqual([3, 1]);
    expect(await purgeExpired(harness.deps)).toBe(0);
  });

  test("leaves finished keys alone until they expire", async () => {
    const harness = await stage.start({ workers: ["attempts"] });
    const key = newKey();
    await pay(harness, { key });
    expect(await purgeExpired(harness.deps)).toBe(0);
    expect(await pay(harness, { key })).toMatchObject({ type: "final", replayed: true });
  });

  test("beside another purge neither waits for it nor counts its keys", async () => {
    const harness = await stage.start({ workers: [], env: { PURGE_BATCH_SIZE: "5" } });
    const other = await harness.another({ workers: [], env: { PURGE_BATCH_SIZE: "5" } });
    await addFinishedKeys(harness, 10);
    await harness.deps.db.sql.begin(async (tx) => {
      await tx`select 1 from idempotency_keys where key in ('old-10', 'old-9', 'old-8') for update`;
      expect(await purgeExpired(other.deps)).toBe(5);
      expect(await oldKeysOf(harness)).toEqual(["old-10", "old-9", "old-8", "old-2", "old-1"]);
    });
    const both = await Promise.all([purgeExpired(harness.deps), purgeExpired(other.deps)]);
    expect(both[0] + both[1] + (await purgeExpired(harness.deps))).toBe(5);
    expect(await oldKeysOf(harness)).toEqual([]);
  });

  test("runs by itself, batch after batch, until nothing is left", async () => {
    const harness = await stage.start({
      workers: ["reaper"],
      env: { PURGE_BATCH_SIZE: "2", PURGE_INTERVAL_MS: "20" },
    });
    await addFinishedKeys(harness, 9);
    await expect.poll(() => oldKeysOf(harness)).toEqual([]);
  });
});

describe("a key in progress is never purged", () => {
  test("while its payment runs, whatever its age and however often the purge runs", async () => {
    const harness = await stage.start({
      env: { PURGE_INTERVAL_MS: "10", IDEMPOTENCY_RETENTION_HOURS: "0.0000001" },
    });
    const { control } = harness.sandbox;
    await control.addFault({
      match: { call: "payment_intents.create" },
      fault: { type: "hang", effect: "applied" },
    });
    const key = newKey();
    const first = pay(harness, { key });
    await control.waitForHeld();
    await harness.deps.db.sql`update idempotency_keys set created_at = now() - interval '1 year'`;
    expect(await purgeExpired(harness.deps)).toBe(0);
    await expect(pay(harness, { key })).rejects.toMatchObject({ code: "idempotency_key_in_progress" });
    await control.release();
    expect(documentOf(await first).status).toBe("succeeded");
  });

  test("while its outcome is unknown and a person is asked", async () => {
    const harness = await stage.start({ env: { ...HASTY, UNKNOWN_REVIEW_AFTER_MS: "1" } });
    const { control } = harness.sandbox;
    await control.addFault({
      match: { call: "payment_intents.confirm" },
      fault: { type: "reset", effect: "applied" },
    });
    await control.addFault({
      match: { call: "payment_intents.retrieve" },
      times: null,
      fault: { type: "error", status: 500 },
    });
    const key = newKey();
    const answer = await pay(harness, { key });
    expect(documentOf(answer).status).toBe("needs_review");
    expect(await purgeExpired(harness.deps)).toBe(0);
    await expect(pay(harness, { key })).rejects.toMatchObject({
      code: "idempotency_key_in_progress",
      extra: { payment: { status: "needs_review" } },
    });
    await control.clearFaults();
    await expect
      .poll(async () => documentOf(await pay(harness, { key, explicit: true })).status)
      .toBe("succeeded");
  });

  test("even where its row has an expiry that it should not have", async () => {
    const harness = await stage.start({ workers: [] });
    await addFinishedKeys(harness, 1);
    await harness.deps.db.sql`update idempotency_keys set state = 'in_progress' where tenant_id = 'ten_old'`;
    expect(await purgeExpired(harness.deps)).toBe(0);
    expect(await oldKeysOf(harness)).toEqual(["old-1"]);
    await removeOldKeys(harness);
  });
});
