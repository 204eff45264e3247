import { randomBytes } from "node:crypto";
import { appendFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createLogger } from "../../src/lib/log.js";
import { checkReadiness } from "../../src/operations/check-health.js";
import { RecoveryWatch } from "../../src/operations/recovery-watch.js";
import { openDatabase } from "../../src/store/db.js";
import type { Pawl } from "../../src/wire.js";
import { authorized, capture, paid, refund } from "../support/effects.js";
import { documentOf, type Harness, newKey, pay, startHarness } from "../support/harness.js";
import { type Cluster, startCluster } from "../support/postgres-cluster.js";
import { COMPARING } from "../support/reconciliation.js";
import { processOn, tenantOn } from "../support/restored.js";
import { createTestDatabase, type TestDatabase } from "../support/test-database.js";
import { until } from "../support/until.js";
import { dumpDatabase, restoreDatabase } from "../support/whole-dump.js";

const SECRET = randomBytes(8).toString("hex");
const silent = createLogger({ level: "silent" });
const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function newDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase();
  ends.push(() => database.drop());
  return database;
}

/** A watch as a process that starts has it, and the statements of a test on the same database. */
async function watchOn({ url }: Pick<TestDatabase, "url">) {
  const db = await openDatabase({ url, poolMax: 2, prepare: true });
  ends.push(() => db.close());
  return { db, watch: new RecoveryWatch(db, silent) };
}

async function firstStart(database: TestDatabase) {
  const started = await watchOn(database);
  await started.db.sql`insert into installation (secret) values (${SECRET})`;
  await started.watch.check();
  return started;
}

const asAdmin = async (url: string, statement: string) => {
  const admin = postgres(url, { max: 1, onnotice: () => undefined });
  await admin.unsafe(statement).finally(() => admin.end());
};

describe("a process that starts", () => {
  test("for the first time records where the data is, and recovers from nothing", async () => {
    const { db, watch } = await firstStart(await newDatabase());
    expect(watch.isRecovering()).toBe(false);
    const [row] = await db.sql<{ system_identifier: string; cluster_timeline: number }[]>`
      select system_identifier, cluster_timeline from installation`;
    const [cluster] = await db.sql<{ id: string }[]>`
      select system_identifier::text as id from pg_control_system()`;
    expect(row?.system_identifier).toMatch(new RegExp(`^${cluster?.id}/\\d+\\.\\d+$`));
    expect(row?.cluster_timeline).toBe(1);
  });

  test("again where the data is as before recovers from nothing", async () => {
    const database = await newDatabase();
    await firstStart(database);
    const { watch } = await watchOn(database);
    await watch.check();
    expect(watch.current()).toBeNull();
  });

  test.each([
    ["cluster_changed", "system_identifier = '1/' || split_part(system_identifier, '/', 2)"],
    ["database_restored", "system_identifier = split_part(system_identifier, '/', 1) || '/1.1'"],
    ["timeline_changed", "cluster_timeline = cluster_timeline + 1"],
  ])("recovers where the recorded identity is another one: %s, and says so once", async (reason, change) => {
    const database = await newDatabase();
    const { db } = await firstStart(database);
    await db.sql`update installation set ${db.sql.unsafe(change)}`;
    const { watch } = await watchOn(database);
    await watch.check();
    expect(watch.current()).toMatchObject({ reason });
    const since = watch.current()?.since;
    const next = await watchOn(database);
    await next.watch.check();
    expect(next.watch.current()).toEqual({ reason, since });
    await db.sql`update installation set recovering_since = null, recovery_reason = null`;
    await next.watch.check();
    expect(next.watch.current()).toBeNull();
  });

  test("on a dump that was restored into another database beside it recovers", async () => {
    const original = await newDatabase();
    await firstStart(original);
    const restored = await newDatabase();
    await restoreDatabase(restored.adminUrl, await dumpDatabase(original.url));
    const { watch } = await watchOn(restored);
    await watch.check();
    expect(watch.current()?.reason).toBe("database_restored");
  });

  test("as a role that may not ask for the cluster's identity finds what is left, and nothing by mistake", async () => {
    const database = await newDatabase();
    const { db } = await firstStart(database);
    const hide = "revoke execute on function pg_control_system() from public;";
    await asAdmin(
      database.adminUrl,
      `${hide} revoke execute on function pg_walfile_name(pg_lsn) from public`,
    );
    const { watch } = await watchOn(database);
    await watch.check();
    expect(watch.current()).toBeNull();
    await db.sql`update installation set system_identifier = split_part(system_identifier, '/', 1) || '/1.1'`;
    await watch.check();
    expect(watch.current()?.reason).toBe("database_restored");
  });

  test("before the role was given the right records the rest when it is, and recovers from nothing", async () => {
    const database = await newDatabase();
    await asAdmin(database.adminUrl, "revoke execute on function pg_control_system() from public");
    const { db } = await firstStart(database);
    await asAdmin(database.adminUrl, "grant execute on function pg_control_system() to public");
    const { watch } = await watchOn(database);
    await watch.check();
    expect(watch.current()).toBeNull();
    expect(await db.sql`select 1 from installation where system_identifier like '-/%'`).toEqual([]);
  });
});

describe("while the database recovers", () => {
  let harness: Harness;
  beforeEach(async () => {
    harness = await startHarness({ env: { ...COMPARING, DATABASE_CHECK_INTERVAL_MS: "30" } });
    ends.push(() => harness.stop());
  });

  test("nothing new is accepted, and what is stored is replayed and read", async () => {
    const key = newKey();
    const refundKey = newKey();
    const id = await paid(harness, { key });
    const held = await authorized(harness);
    await refund(harness, id, 100, { key: refundKey });
    await harness.deps.recovery.begin("a drill", null);
    const refusal = { code: "service_unavailable", extra: { retryAfterSeconds: 30 } };
    await expect(pay(harness)).rejects.toMatchObject(refusal);
    await expect(capture(harness, held)).rejects.toMatchObject(refusal);
    await expect(refund(harness, id, 100)).rejects.toMatchObject(refusal);
    expect(await pay(harness, { key, input: { amount: 10_000 } })).toMatchObject({ replayed: true });
    expect(await refund(harness, id, 100, { key: refundKey })).toMatchObject({ replayed: true });
  });

  test("a process that did not notice it is told by the row, and readiness says so and stays ready", async () => {
    const another = await harness.another({ env: { DATABASE_CHECK_INTERVAL_MS: "30" }, workers: [] });
    await harness.deps.recovery.begin("a drill", null);
    await until(
      "the other process to know",
      () => another.deps.recovery.current(),
      (current) => current !== null,
    );
    await expect(pay(harness, { deps: another.deps })).rejects.toMatchObject({ code: "service_unavailable" });
    expect(await checkReadiness(another.deps)).toMatchObject({
      ready: true,
      checks: { database: "ok", recovery: expect.stringMatching(/^recovering since .*: a drill$/) as string },
    });
  });
});

test("a standby that is promoted is recovered from without a person: the timeline tells of it", async () => {
  const cluster: Cluster = await startCluster({ durable: false });
  ends.push(() => cluster.remove());
  const harness = await startHarness({ workers: [] });
  ends.push(() => harness.stop());
  const env = { ...COMPARING, DATABASE_CHECK_INTERVAL_MS: "50" };
  const process: Pawl = await processOn(harness, cluster.url, { env, workers: ["attempts", "comparison"] });
  ends.push(async () => {
    await process.drain(0);
    await process.close();
  });
  const seen = await tenantOn(process, harness);
  expect(documentOf(await pay(seen)).status).toBe("succeeded");

  await restartAsPromoted(cluster);
  const { sql } = process.deps.db;
  const timeline = async () => {
    const [row] = await sql<{ cluster_timeline: number }[]>`select cluster_timeline from installation`;
    return row?.cluster_timeline ?? 0;
  };
  await until(
    "the new timeline",
    () => timeline().catch(() => 0),
    (number) => number === 2,
  );
  // The row says it a moment before the process has read it.
  const recoveries = () => sql<{ state: string }[]>`
    select state from reconciliation_runs where trigger = 'recover'`;
  await until("the end of its comparison", recoveries, ([run]) => run?.state === "completed");
  await until(
    "an end of the recovery",
    () => process.deps.recovery.current(),
    (current) => current === null,
  );
  expect(await recoveries()).toHaveLength(1);
  expect(documentOf(await pay(seen)).status).toBe("succeeded");
});

/** As the end of an archive recovery does, the server goes on under the next timeline. */
async function restartAsPromoted(cluster: Cluster): Promise<void> {
  const admin = postgres(cluster.adminUrl, { max: 1 });
  const [row] = await admin<{ data_directory: string }[]>`show data_directory`;
  await admin.end();
  const folder = row?.data_directory ?? "";
  await cluster.stop("fast");
  appendFileSync(join(folder, "postgresql.auto.conf"), "restore_command = 'false'\n");
  writeFileSync(join(folder, "recovery.signal"), "");
  await cluster.start();
}
