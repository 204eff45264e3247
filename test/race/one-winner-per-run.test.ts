import { describe, expect, test } from "vitest";
import { documentOf, newKey, pay, until } from "../support/harness.js";
import { HASTY, onlyObject, useStage } from "../support/stage.js";

const stage = useStage();
const SHORT_BUDGET = { ...HASTY, ATTEMPT_RETRY_BUDGET_MS: "1000" };
const CROWD = 20;

/** A key whose first run is proven to be without effect, with the provider back. */
async function failedWithoutEffect() {
  const harness = await stage.start({ env: SHORT_BUDGET });
  const key = newKey();
  await harness.sandbox.control.closeListener();
  const first = await pay(harness, { key }).catch((error: unknown) => error);
  expect(first).toMatchObject({ code: "provider_unavailable", extra: { payment: { status: "failed" } } });
  await harness.sandbox.control.openListener();
  // After the failure: its longer budget would hold the first run open.
  const other = await harness.another({ env: { ...HASTY, ATTEMPT_RETRY_BUDGET_MS: "20000" } });
  const failedId = (first as { extra: { payment: { id: string } } }).extra.payment.id;
  return { harness, other, key, failedId };
}

describe("a key that may run again", () => {
  test("has one winner of many that race for it, and all who wait get that one's answer", async () => {
    const { harness, other, key, failedId } = await failedWithoutEffect();
    const deps = [harness.deps, other.deps] as const;
    const answers = await Promise.all(
      Array.from({ length: CROWD }, (_, at) =>
        pay(harness, { key, explicit: true, deps: deps[at % 2] as never }),
      ),
    );
    const ids = new Set(answers.map((answer) => documentOf(answer).id));
    expect(ids.size).toBe(1);
    expect(ids.has(failedId)).toBe(false);
    expect(answers.filter((answer) => answer.type === "final" && !answer.replayed)).toHaveLength(1);
    const runs = await harness.deps.db.sql<
      { run: number; payment_id: string }[]
    >`select * from attempts order by run`;
    expect(runs.map((row) => row.run)).toEqual([1, 2]);
    expect((await onlyObject(harness)).successful_charges).toBe(1);
  });

  test("has one winner of many that stand before the same row at once", async () => {
    const { harness, other, key, failedId } = await failedWithoutEffect();
    const { sql } = harness.deps.db;
    const racing = await sql.begin(async (tx) => {
      await tx`select 1 from idempotency_keys where key = ${key} for update`;
      const answers = [harness.deps, other.deps, harness.deps, other.deps].map((deps) =>
        pay(harness, { key, explicit: true, deps }),
      );
      await until(
        "four claims that wait for the row",
        () =>
          sql`select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
        (rows) => rows.length === 4,
      );
      return { answers };
    });
    const ids = new Set((await Promise.all(racing.answers)).map((answer) => documentOf(answer).id));
    expect(ids.size).toBe(1);
    expect(ids.has(failedId)).toBe(false);
    expect((await onlyObject(harness)).successful_charges).toBe(1);
  });

  test("keeps the failed payment as it is, beside the new one", async () => {
    const { harness, key, failedId } = await failedWithoutEffect();
    const second = documentOf(await pay(harness, { key }));
    expect(second).toMatchObject({ status: "succeeded" });
    const rows = await harness.deps.db.sql<
      { id: string; status: string }[]
    >`select id, status from payments order by id`;
    expect(rows).toEqual([
      { id: failedId, status: "failed" },
      { id: second.id, status: "succeeded" },
    ]);
  });
});

test("everybody who waits for a run that fails without effect is told so, in every process", async () => {
  const harness = await stage.start({ env: SHORT_BUDGET });
  const other = await harness.another({ env: SHORT_BUDGET });
  await harness.sandbox.control.closeListener();
  const key = newKey();
  const first = pay(harness, { key });
  await expect.poll(async () => (await harness.deps.db.sql`select 1 from idempotency_keys`).length).toBe(1);
  const waiting = [harness.deps, other.deps].map((deps) => pay(harness, { key, explicit: true, deps }));
  const settled = await Promise.allSettled([first, ...waiting]);
  for (const one of settled) {
    expect(one).toMatchObject({ status: "rejected", reason: { code: "provider_unavailable" } });
  }
});

test("a run that fails without effect again leaves the key to a third", async () => {
  const { harness, key } = await failedWithoutEffect();
  await harness.sandbox.control.closeListener();
  await expect(pay(harness, { key })).rejects.toMatchObject({ code: "provider_unavailable" });
  await harness.sandbox.control.openListener();
  expect(documentOf(await pay(harness, { key })).status).toBe("succeeded");
  const runs = await harness.deps.db.sql<{ run: number }[]>`select run from attempts order by run`;
  expect(runs.map((row) => row.run)).toEqual([1, 2, 3]);
});
