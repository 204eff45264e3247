import { request } from "node:http";
import { connect } from "node:net";
import postgres from "postgres";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { newKey, VISA } from "../support/api-client.js";
import { describeWithFaults } from "../support/e2e-target.js";
import { blindSends, expectSettled } from "../support/settle.js";
import { type Api, type System, startFaultySystem, untilStatus } from "../support/system.js";
import { until } from "../support/until.js";

const CONFIRM = { match: { call: "payment_intents.confirm" } } as const;
/** A provider that takes longer than any of these tests wants to wait, and well under the time-out. */
const PATIENT = { PROVIDER_TIMEOUT_MS: "15000", ATTEMPT_LEASE_MS: "30000" } as const;
const CREATES = 50;

describeWithFaults("a provider and processes that come and go", () => {
  let system: System;

  beforeAll(async () => {
    system = await startFaultySystem();
  });
  afterEach(async () => {
    await system.control.openListener();
    await system.control.clearFaults();
    await system.control.release();
    await system.crashWorkers();
  });
  afterAll(() => system.drop());

  it("waits with 202 while the provider is stopped and pays once it is back", async () => {
    const api = await system.api();
    await system.worker();
    const first = await api.client.pay(VISA);
    expect(first.status).toBe(201);
    await system.control.closeListener();
    const key = newKey();
    const patient = await api.client.pay(VISA, { key, prefer: "wait=1" });
    expect([patient.status, patient.json.status]).toEqual([202, "processing"]);
    expect(Number(patient.headers.get("Retry-After"))).toBeGreaterThan(0);
    const id = patient.json.id ?? "";
    await until(
      "a payment that says why it waits",
      () => api.client.payment(id),
      (payment) => payment.resolution !== null,
    );

    await system.control.openListener();
    await untilStatus(api.client, id, ["succeeded"]);
    const replayed = await api.client.pay(VISA, { key });
    expect([replayed.status, replayed.headers.get("Idempotent-Replayed")]).toEqual([201, "true"]);
    await expectSettled(api.client, system.control, [id]);
  });

  it("tells who waits that nothing was charged when the provider stays away beyond the budget; the same key pays later", async () => {
    const env = { ATTEMPT_RETRY_BUDGET_MS: "1500" };
    const api = await system.api(env);
    await system.worker(env);
    await system.control.closeListener();
    const key = newKey();
    const refused = await api.client.pay(VISA, { key, prefer: "wait=20" });
    expect([refused.status, refused.json.code]).toEqual([503, "provider_unavailable"]);
    expect(Number(refused.headers.get("Retry-After"))).toBeGreaterThan(0);
    const failed = refused.json.payment;
    expect([failed?.status, failed?.failure?.retry]).toEqual(["failed", "same_key"]);
    await system.control.openListener();

    const paid = await api.client.pay(VISA, { key });
    expect([paid.status, paid.headers.get("Idempotent-Replayed")]).toEqual([201, null]);
    expect(paid.json.id).not.toBe(failed?.id);
    await expectSettled(api.client, system.control, [paid.json.id ?? ""]);
  });

  it("serves reads at once and loses nothing while a slow provider holds 50 payments of a small pool", async () => {
    const env = { ...PATIENT, DATABASE_POOL_MAX: "5" };
    const api = await system.api(env);
    await system.worker({ ...env, WORKER_CONCURRENCY: "100" });
    const [old] = [await api.client.pay(VISA)];
    await system.control.addFault({ ...CONFIRM, times: null, fault: { type: "hang", effect: "applied" } });
    const creating = Array.from({ length: CREATES }, () => api.client.pay(VISA, { prefer: "wait=30" }));
    await system.control.waitForHeld({ count: CREATES });

    const admin = postgres(system.adminUrl ?? "", { max: 1, onnotice: () => undefined });
    for (let times = 0; times < 20; times += 1) {
      const sinceMs = performance.now();
      expect((await api.client.get(`/v1/payments/${old?.json.id ?? ""}`)).status).toBe(200);
      expect((await fetch(`${api.adminUrl}/readyz`)).status).toBe(200);
      expect(performance.now() - sinceMs).toBeLessThan(1_000);
    }
    const open = await admin`
      select query from pg_stat_activity
       where datname = current_database() and state like 'idle in transaction%' and now() - state_change > interval '1 second'`;
    await admin.end();
    expect(open).toEqual([]);

    await system.control.clearFaults();
    await system.control.release();
    const answers = await Promise.all(creating);
    expect(answers.map((answer) => answer.status)).toEqual(answers.map(() => 201));
    await expectSettled(
      api.client,
      system.control,
      answers.map((answer) => answer.json.id ?? ""),
    );
  });

  it("makes one payment of 50 identical requests at two processes, and replays it after both restarted", async () => {
    const before = (await system.control.counts()).payment_intents;
    let apis = [await system.api(), await system.api()];
    await system.worker();
    await system.worker();
    const key = newKey();
    const send = () =>
      Promise.all(
        Array.from({ length: CREATES }, (_, at) => (apis[at % 2] as Api).client.pay(VISA, { key })),
      );
    const answers = await send();
    const paid = answers.filter((answer) => answer.status < 300);
    expect(new Set(paid.map((answer) => answer.text)).size).toBe(1);
    for (const answer of answers.filter((one) => one.status >= 300)) {
      expect([answer.status, answer.json.code]).toEqual([409, "idempotency_key_in_progress"]);
      expect(Number(answer.headers.get("Retry-After"))).toBeGreaterThan(0);
    }
    expect(
      answers.filter((answer) => answer.headers.get("Idempotent-Replayed") === null && answer.status === 201),
    ).toHaveLength(1);

    for (const api of apis) expect((await api.process.stop()).code).toBe(0);
    apis = [await system.api(), await system.api()];
    const calls = (await system.control.listRequests()).length;
    for (const answer of await send()) {
      expect([answer.status, answer.text]).toEqual([201, paid[0]?.text]);
      expect(answer.headers.get("Idempotent-Replayed")).toBe("true");
    }
    expect((await system.control.listRequests()).length).toBe(calls);
    expect((await system.control.counts()).payment_intents).toBe(before + 1);
  });

  describe("stopping", () => {
    it("answers what it has begun, takes no new connection, and exits 0 within the grace", async () => {
      const api = await system.api(PATIENT);
      const worker = await system.worker(PATIENT);
      await api.client.pay(VISA);
      await system.control.addFault({ ...CONFIRM, fault: { type: "hang", effect: "applied" } });
      const answering = api.client.pay(VISA, { prefer: "wait=30" });
      await system.control.waitForHeld();
      const stopping = [api.process.stop(), worker.process.stop()];
      await until(
        "a refused connection",
        () => canConnect(api.url),
        (can) => !can,
      );
      expect(await fetch(`${api.adminUrl}/readyz`).then((answer) => answer.status)).toBe(503);
      await system.control.release();

      const answer = await answering;
      expect([answer.status, answer.json.status]).toEqual([201, "succeeded"]);
      expect(answer.headers.get("Connection")).toBe("close");
      expect(await Promise.all(stopping)).toEqual([
        { code: 0, signal: null },
        { code: 0, signal: null },
      ]);
    });

    it("exits 1 when the grace is over, and another worker ends what was cut off, asking first", async () => {
      await system.control.clearRequests();
      const api = await system.api();
      const worker = await system.worker({ ...PATIENT, SHUTDOWN_GRACE_MS: "300", ATTEMPT_LEASE_MS: "30000" });
      await system.control.addFault({ ...CONFIRM, fault: { type: "hang", effect: "applied" } });
      const accepted = await api.client.pay(VISA, { prefer: "respond-async" });
      await system.control.waitForHeld();
      expect(await worker.process.stop()).toEqual({ code: 1, signal: null });
      await system.control.release();
      const id = accepted.json.id ?? "";
      const admin = postgres(system.adminUrl ?? "", { max: 1, onnotice: () => undefined });
      // Time passes: the lease of the worker that is gone ends.
      await admin`update attempts set lease_expires_at = now(), due_at = now() where payment_id = ${id}`;
      await admin.end();
      await system.worker();
      await expectSettled(api.client, system.control, [id]);
      expect(blindSends(await system.control.listRequests())).toEqual([]);
    });

    it("tells a caller who would wait beyond the grace that the payment is processing", async () => {
      const api = await system.api({ ...PATIENT, SHUTDOWN_GRACE_MS: "1000" });
      const answering = api.client.pay(VISA, { prefer: "wait=30" });
      await until(
        "an accepted payment",
        () => api.client.get("/v1/payments?status=processing"),
        (answer) => answer.json.data?.length === 1,
      );
      const stopping = api.process.stop();
      const answer = await answering;
      expect([answer.status, answer.json.status]).toEqual([202, "processing"]);
      expect((await stopping).code).toBe(0);
      const heir = await system.api();
      await system.worker();
      await expectSettled(heir.client, system.control, [answer.json.id ?? ""]);
    });

    it("does not wait for a connection that a client only keeps open", async () => {
      const api = await system.api({ SHUTDOWN_GRACE_MS: "10000" });
      const idle = connect(Number(new URL(api.url).port), "127.0.0.1");
      await new Promise((resolve) => idle.once("connect", resolve));
      const closed = new Promise((resolve) => idle.once("close", resolve));
      await keptAlive(api.url);
      const sinceMs = performance.now();
      expect((await api.process.stop()).code).toBe(0);
      expect(performance.now() - sinceMs).toBeLessThan(5_000);
      await closed;
    });
  });
});

function canConnect(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname);
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}

/** One request over a connection that the client keeps for the next one. */
function keptAlive(url: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const outgoing = request(`${url}/openapi.json`, { headers: { Connection: "keep-alive" } }, (answer) => {
      answer.resume();
      answer.once("end", resolve);
    });
    outgoing.once("socket", (socket) => socket.on("error", () => undefined));
    outgoing.once("error", reject);
    outgoing.end();
  });
}
