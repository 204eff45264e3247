import postgres from "postgres";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { ApiAnswer } from "../support/api-client.js";
import { newKey, VISA } from "../support/api-client.js";
import { describeWithFaults } from "../support/e2e-target.js";
import { type Load, startLoad } from "../support/load.js";
import { type Cluster, startCluster } from "../support/postgres-cluster.js";
import { expectSettled } from "../support/settle.js";
import { type Api, type System, startFaultySystem, untilStatus, type Worker } from "../support/system.js";
import { TcpProxy } from "../support/tcp-proxy.js";
import { until } from "../support/until.js";

/** Contract: normal within 5 s of the database's return. */
const RECOVERY_MS = 5_000;
const CALLERS = 8;

describeWithFaults("the database goes away", () => {
  let cluster: Cluster;
  let system: System;
  let apis: Api[];
  let workers: Worker[];

  beforeAll(async () => {
    cluster = await startCluster({ durable: true });
    system = await startFaultySystem({ databaseUrl: cluster.url });
    apis = [await system.api(), await system.api()];
    workers = [await system.worker(), await system.worker()];
  });
  afterAll(() => cluster.remove());

  const client = () => (apis[0] as Api).client;
  const readiness = (adminUrl: string) => fetch(`${adminUrl}/readyz`).then((answer) => answer.status);
  const admins = () => [...apis, ...workers].map((one) => one.adminUrl);
  const untilReady = (status: number, patienceMs?: number) =>
    until(
      `readiness ${status} everywhere`,
      () => Promise.all(admins().map(readiness)),
      (all) => all.every((one) => one === status),
      patienceMs,
    );

  function expectNobodyExited(): void {
    for (const { process } of [...apis, ...workers])
      expect(process.exit, process.stderr.slice(-2_000)).toBeNull();
  }

  /** A refusal that a client can act on: send the same again later. */
  function expectRetryable(answer: ApiAnswer): void {
    expect(["service_unavailable", "idempotency_key_in_progress"], answer.text).toContain(answer.json.code);
    expect(Number(answer.headers.get("Retry-After"))).toBeGreaterThan(0);
  }

  async function expectWholeAndNormal(load: Load, within: number): Promise<void> {
    await load.more(CALLERS);
    expect(performance.now() - within).toBeLessThan(RECOVERY_MS);
    const ids = await load.finish();
    expect(load.broken).toEqual([]);
    load.refusals.filter((answer) => answer.status !== 202).forEach(expectRetryable);
    expectNobodyExited();
    // Callers saw a payment under each key; whatever the database accepted besides would be an effect nobody asked for.
    const admin = postgres(cluster.url, { max: 1 });
    const [row] = await admin`select count(*)::int as count from payments where status <> 'succeeded'`;
    await admin.end();
    expect(row?.["count"]).toBe(0);
    const counts = await system.control.counts("payment_attempt_id");
    expect(Object.values(counts.by_metadata).filter((one) => one.successful_charges > 1)).toEqual([]);
    await expectSettled(client(), system.control, ids.slice(-CALLERS));
  }

  it.each(["fast", "immediate"] as const)("restarts (%s) while nothing happens", async (mode) => {
    await untilReady(200);
    await cluster.stop(mode);
    const refused = await client().pay(VISA);
    expect([refused.status, refused.json.code]).toEqual([503, "service_unavailable"]);
    expectRetryable(refused);
    const unread = await client().get("/v1/payments");
    expect([unread.status, unread.json.code]).toEqual([503, "service_unavailable"]);
    await untilReady(503);
    expect(
      await Promise.all(admins().map((url) => fetch(`${url}/healthz`).then((answer) => answer.status))),
    ).toEqual(admins().map(() => 200));

    await cluster.start();
    await untilReady(200, RECOVERY_MS);
    const paid = await client().pay(VISA);
    expect(paid.status).toBe(201);
    await expectSettled(client(), system.control, [paid.json.id ?? ""]);
    expectNobodyExited();
  });

  it.each(["fast", "immediate"] as const)("restarts (%s) under load and loses no payment", async (mode) => {
    const load = startLoad(
      apis.map((api) => api.client),
      CALLERS,
    );
    await load.more(2 * CALLERS);
    await cluster.restart(mode);
    await expectWholeAndNormal(load, performance.now());
  });

  it("ends every session under load, again and again, and loses no payment", async () => {
    const load = startLoad(
      apis.map((api) => api.client),
      CALLERS,
    );
    const admin = postgres(cluster.adminUrl, { max: 1, onnotice: () => undefined });
    for (let times = 0; times < 5; times += 1) {
      await load.more(CALLERS);
      await admin`select pg_terminate_backend(pid) from pg_stat_activity where datname = 'pawl'`;
    }
    await admin.end();
    await expectWholeAndNormal(load, performance.now());
  });

  it("is lost right after the provider applied the charge, and nobody asks again: the worker ends it", async () => {
    await system.control.addFault({
      match: { call: "payment_intents.confirm" },
      fault: { type: "hang", effect: "applied" },
    });
    const key = newKey();
    const gone = new AbortController();
    const left = expect(client().pay(VISA, { key, signal: gone.signal })).rejects.toThrow();
    const [held] = await system.control.waitForHeld();
    await cluster.stop("immediate");
    gone.abort();
    await left;
    await system.control.release();
    const said = /attempt left to its lease|worker round failed/;
    await until(
      "a worker that could not write its outcome",
      () => workers.map((worker) => worker.process.stderr.slice(-5_000)),
      (texts) => texts.some((text) => said.test(text)),
    );

    await cluster.start();
    const late = await until(
      "the settled answer under the same key",
      () => client().pay(VISA, { key, prefer: "wait=5" }),
      (answer) => answer.status === 201,
    );
    expect(late.json.provider_payment_id).toBe(held?.object_id);
    await expectSettled(client(), system.control, [late.json.id ?? ""]);
    expectNobodyExited();
  });

  it("does not answer: the caller gets a 503 in time, and one payment once it does", async () => {
    const proxy = await TcpProxy.before(cluster.url);
    const api = await system.api({ DATABASE_URL: proxy.through(cluster.url) });
    const key = newKey();
    const held = proxy.holdRequest(key);
    const refused = await api.client.pay(VISA, { key });
    expectRetryable(refused);
    expect(refused.status).toBe(503);
    held.release();
    const answer = await until(
      "the settled answer under the same key",
      () => api.client.pay(VISA, { key, prefer: "wait=5" }),
      (seen) => seen.status === 201,
    );
    await untilStatus(api.client, answer.json.id ?? "", ["succeeded"]);
    await expectSettled(api.client, system.control, [answer.json.id ?? ""]);
    expect((await api.process.stop()).code).toBe(0);
    await proxy.stop();
  });
});
