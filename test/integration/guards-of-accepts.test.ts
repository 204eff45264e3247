import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { acceptRow } from "../../src/operations/accept-row.js";
import { acceptRetry } from "../../src/store/accept.js";
import { acceptEffect, type EffectRow } from "../../src/store/accept-effect.js";
import { documentOf, type Harness, newKey, pay, paymentInput, startHarness } from "../support/harness.js";

let harness: Harness;
let key: string;
let paymentId: string;
beforeAll(async () => {
  harness = await startHarness({ workers: [] });
});
beforeEach(async () => {
  key = newKey();
  paymentId = documentOf(await pay(harness, { waitMs: 0 })).id;
});
afterAll(() => harness.stop());

/** A key as its first run has left it, without effect. */
async function keyOf(operation: string, columns: Readonly<Record<string, string | number>>): Promise<void> {
  const { sql } = harness.deps.db;
  const row = {
    tenant_id: harness.caller.tenantId,
    operation,
    key,
    fingerprint: "print",
    state: "failed_retryable",
    run: 1,
    resource_id: paymentId,
    request_id: "req_1",
    ...columns,
  };
  await sql`insert into idempotency_keys ${sql(row)}`;
  await sql`update idempotency_keys set expires_at = coalesce(expires_at, now() + interval '1 hour') where key = ${key}`;
}

/** What a key may be by the time that its next run is written. */
const MOVED_ON: readonly [string, Readonly<Record<string, string | number>>][] = [
  ["runs already", { state: "in_progress" }],
  ["has been answered", { state: "completed", response_status: 201, response_body: "{}" }],
  ["has run once more", { run: 2 }],
  ["has lost its last run", { run: 0 }],
  ["is another request's", { fingerprint: "other" }],
  ["has expired", { expires_at: "2020-01-01T00:00:00Z" }],
];

const attempts = async (id: string) =>
  (await harness.deps.db.sql`select 1 from attempts where id = ${id}`).length;

describe("the second run of a payment's key", () => {
  async function run(): Promise<{ written: boolean; rows: number }> {
    const { deps, caller } = harness;
    const context = { requestId: "req_2", traceparent: null, signal: new AbortController().signal };
    const keyed = { caller, context, operation: "payments.create", key, fingerprint: "print" };
    const request = { ...keyed, input: paymentInput(), wait: { waitMs: 0, explicit: false } };
    const row = acceptRow(deps, request, 2);
    const accepted = await acceptRetry(deps.db.sql, row, 1);
    return { written: accepted !== null, rows: await attempts(row.attempt_id) };
  }

  test("is written where the first was without effect", async () => {
    await keyOf("payments.create", {});
    expect(await run()).toEqual({ written: true, rows: 1 });
  });

  test.each(MOVED_ON)("is not written where the key %s", async (_name, columns) => {
    await keyOf("payments.create", columns);
    expect(await run()).toEqual({ written: false, rows: 0 });
  });
});

describe("the second run of an effect's key", () => {
  function rowOf(changes: Partial<EffectRow> = {}): EffectRow {
    const id = newKey();
    const own = { key, attempt_id: `att_${id}`, timeline_id: `tl_${id}`, tenant_id: harness.caller.tenantId };
    return {
      payment_id: paymentId,
      from_version: 1,
      operation: "payments.capture",
      fingerprint: "print",
      run: 2,
      resource_id: paymentId,
      request_id: "req_2",
      kind: "capture",
      amount: null,
      provider: "stripe",
      provider_account: null,
      provider_payment_id: "pi_1",
      livemode: false,
      parameters: "{}",
      reason: "requested",
      opens: true,
      refund: null,
      searched: true,
      ...own,
      ...changes,
    };
  }

  async function write(row: EffectRow): Promise<{ told: string; rows: number; opened: boolean }> {
    const { sql } = harness.deps.db;
    const told = await acceptEffect(sql, row, harness.deps.recovery.tells);
    const [payment] = await sql<{ opened: boolean }[]>`
      select open_effect is not null as opened from payments where id = ${paymentId}`;
    return { told, rows: await attempts(row.attempt_id), opened: payment?.opened === true };
  }

  test("is written where the first was without effect", async () => {
    await keyOf("payments.capture", {});
    expect(await write(rowOf())).toEqual({ told: "claimed", rows: 1, opened: true });
  });

  test.each(MOVED_ON)("is not written where the key %s", async (_name, columns) => {
    await keyOf("payments.capture", columns);
    expect(await write(rowOf())).toEqual({ told: "key_stands", rows: 0, opened: false });
  });

  test("is not written where the payment is not what it was judged by", async () => {
    await keyOf("payments.capture", {});
    expect(await write(rowOf({ from_version: 2 }))).toEqual({ told: "moved", rows: 0, opened: false });
    expect(await write(rowOf({ run: 1, key: newKey(), from_version: 2 }))).toEqual({
      told: "moved",
      rows: 0,
      opened: false,
    });
  });
});
