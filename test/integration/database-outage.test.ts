import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { checkReadiness } from "../../src/operations/check-health.js";
import { documentOf, newKey, pay, until, untilStatus } from "../support/harness.js";
import { payPatiently } from "../support/patient-client.js";
import { CROWDED, HASTY, useStage, wireOf } from "../support/stage.js";
import { type Cluster, startCluster, type TestDatabase } from "../support/test-database.js";

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ durable: true });
});
afterAll(() => cluster.remove());

const stage = useStage();

/** The one database of the cluster; each test leaves its rows there, under a tenant of its own. */
function database(): TestDatabase {
  return { url: cluster.url, adminUrl: cluster.adminUrl, drop: () => emptied() };

  async function emptied(): Promise<void> {
    await cluster.restart("fast");
  }
}

describe.each(["fast", "immediate"] as const)(
  "a database that is lost (%s) right after the provider acted",
  (mode) => {
    test("loses no payment: it ends by itself when the database is back, and nothing is sent again", async () => {
      const harness = await stage.start({ env: HASTY, database: database() });
      await harness.deps.db
        .sql`truncate idempotency_keys, refunds, payments, attempts, timeline, outbox, reviews, ledger_entries, ledger_uncounted, ledger_balances`;
      const { control } = harness.sandbox;
      const gate = {
        match: { call: "payment_intents.confirm" },
        fault: { type: "hang", effect: "applied" },
      } as const;
      await control.addFault(gate);
      const key = newKey();
      const { id } = documentOf(await pay(harness, { key, waitMs: 0 }));
      await control.waitForHeld();
      await cluster.stop(mode);
      await control.release();

      const refused = { code: "service_unavailable", extra: { retryAfterSeconds: 1 } };
      await expect(pay(harness)).rejects.toMatchObject(refused);
      await expect(pay(harness, { key })).rejects.toMatchObject(refused);
      expect(await checkReadiness(harness.deps)).toMatchObject({ ready: false });

      await cluster.start();
      await until(
        "a ready process",
        () => checkReadiness(harness.deps),
        (readiness) => readiness.ready,
      );
      await untilStatus(harness, id, "succeeded");
      const [create, confirm, ...after] = await wireOf(harness);
      expect([create, confirm]).toEqual(["create 200", expect.stringMatching(/^confirm/)]);
      // Back within the lease, the answer in hand is recorded; after it, only a question may follow.
      expect(after.filter((call) => call !== "retrieve 200")).toEqual([]);
      expect(await pay(harness, { key })).toMatchObject({ type: "final", replayed: true });
      expect(documentOf(await pay(harness)).status).toBe("succeeded");
    });
  },
);

test("sessions that the database ends under load cost repeats, and no payment", async () => {
  const harness = await stage.start({ env: CROWDED });
  const other = await harness.another({ env: CROWDED });
  const admin = postgres(harness.database.adminUrl, { max: 1, onnotice: () => undefined });
  const processes = [harness.deps, other.deps];
  try {
    const clients = Array.from({ length: 40 }, () => payPatiently(harness, processes, { key: newKey() }));
    const ended = new Set<string>();
    const watched = clients.map(async (client) => {
      const { status } = documentOf(await client);
      ended.add(status);
    });
    for (let round = 0; round < 8; round += 1) {
      await admin`
        select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid()`;
      await payPatiently(harness, processes, { key: newKey() });
    }
    await Promise.all(watched);
    expect([...ended]).toEqual(["succeeded"]);
    // The client tells of a connection's end once more to whoever uses it next: here, not to what looks at the rows after it.
    for (const { db } of processes) {
      await Promise.allSettled(Array.from({ length: 40 }, () => db.sql`select 1`));
    }
  } finally {
    await admin.end();
  }
});
