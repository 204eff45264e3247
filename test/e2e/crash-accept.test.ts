import postgres from "postgres";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { type ApiClient, newKey, VISA } from "../support/api-client.js";
import { describeWithFaults } from "../support/e2e-target.js";
import { blindSends, expectSettled } from "../support/settle.js";
import { type System, startFaultySystem, untilStatus } from "../support/system.js";
import { TcpProxy } from "../support/tcp-proxy.js";
import { until } from "../support/until.js";

const TABLES = ["idempotency_keys", "payments", "attempts", "timeline", "outbox"] as const;

describeWithFaults("the API is killed around the commit of a payment", () => {
  let system: System;
  let proxy: TcpProxy;
  let admin: postgres.Sql;

  beforeAll(async () => {
    system = await startFaultySystem();
    proxy = await TcpProxy.before(system.databaseUrl);
    admin = postgres(system.adminUrl ?? "", { max: 2, onnotice: () => undefined });
  });
  afterEach(async () => {
    await system.crashWorkers();
    await system.control.clearFaults();
    await system.control.clearRequests();
  });
  afterAll(async () => {
    await proxy.stop();
    await admin.end();
    await system.drop();
  });

  const throughProxy = () => system.api({ DATABASE_URL: proxy.through(system.databaseUrl) });
  const rowCounts = () =>
    Promise.all(
      TABLES.map((table) =>
        admin`select count(*)::int as count from ${admin(table)}`.then(([row]) => Number(row?.["count"])),
      ),
    );
  const stateOfKey = async (client: ApiClient, key: string) =>
    (await client.get(`/v1/idempotency_keys/${key}?operation=payments.create`)).json["state"] ?? null;

  it("leaves nothing when it dies before the accept reaches the database; the same key then runs", async () => {
    const before = await rowCounts();
    const key = newKey();
    const doomed = await throughProxy();
    const held = proxy.holdRequest(key);
    const lost = expect(doomed.client.pay(VISA, { key })).rejects.toThrow();
    await held.caught;
    await doomed.process.crash();
    await lost;

    const api = await system.api();
    expect(await stateOfKey(api.client, key)).toBeNull();
    expect(await rowCounts()).toEqual(before);
    await system.worker();
    const answer = await api.client.pay(VISA, { key });
    expect([answer.status, answer.headers.get("Idempotent-Replayed")]).toEqual([201, null]);
    await expectSettled(api.client, system.control, [answer.json.id ?? ""]);
  });

  it("leaves nothing when its session ends inside the accept", async () => {
    const before = await rowCounts();
    const key = newKey();
    const doomed = await throughProxy();
    const lock = await admin.reserve();
    await lock`begin`;
    // The key's row is inserted by then; the payment's waits.
    await lock`lock table outbox in share mode`;
    const lost = expect(doomed.client.pay(VISA, { key })).rejects.toThrow();
    const waiting = await until(
      "an accept that waits for the lock",
      () =>
        admin`select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      (rows) => rows.length === 1,
    );
    await doomed.process.crash();
    await lost;
    await admin`select pg_terminate_backend(${String(waiting[0]?.["pid"])}::int)`;
    await lock`rollback`;
    lock.release();

    const api = await system.api();
    expect(await stateOfKey(api.client, key)).toBeNull();
    expect(await rowCounts()).toEqual(before);
  });

  it("replays when it dies after the commit and before the response", async () => {
    const key = newKey();
    const api = await system.api();
    const doomed = await throughProxy();
    const held = proxy.holdAnswer(key);
    const lost = expect(doomed.client.pay(VISA, { key })).rejects.toThrow();
    await held.caught;
    expect(await stateOfKey(api.client, key)).toBe("in_progress");
    await doomed.process.crash();
    await lost;

    const running = await api.client.pay(VISA, { key });
    expect([running.status, running.json.code]).toEqual([409, "idempotency_key_in_progress"]);
    const id = running.json.payment?.id ?? "";
    await system.worker();
    await untilStatus(api.client, id, ["succeeded"]);
    const replayed = await api.client.pay(VISA, { key });
    expect([replayed.status, replayed.json.id]).toEqual([201, id]);
    expect(replayed.headers.get("Idempotent-Replayed")).toBe("true");
    await expectSettled(api.client, system.control, [id]);
  });

  it("answers 503 when its connection breaks after the commit, and the same key then replays the one payment", async () => {
    const key = newKey();
    await system.worker();
    const api = await throughProxy();
    const held = proxy.holdAnswer(key);
    const answering = api.client.pay(VISA, { key });
    await held.caught;
    proxy.cut();
    const broken = await answering;
    expect([broken.status, broken.json.code]).toEqual([503, "service_unavailable"]);
    expect(Number(broken.headers.get("Retry-After"))).toBeGreaterThan(0);

    const answer = await api.client.pay(VISA, { key, prefer: "wait=10" });
    expect([answer.status, answer.headers.get("Idempotent-Replayed")]).toEqual([201, "true"]);
    await expectSettled(api.client, system.control, [answer.json.id ?? ""]);
  });

  it("replays what the worker found when it dies while the provider holds the call", async () => {
    await system.control.addFault({
      match: { call: "payment_intents.confirm" },
      fault: { type: "hang", effect: "applied" },
    });
    const key = newKey();
    const doomed = await system.api();
    const api = await system.api();
    await system.worker();
    const lost = expect(doomed.client.pay(VISA, { key })).rejects.toThrow();
    await system.control.waitForHeld();
    await doomed.process.crash();
    await lost;
    await system.control.release();

    const answer = await api.client.pay(VISA, { key, prefer: "wait=10" });
    expect([answer.status, answer.headers.get("Idempotent-Replayed")]).toEqual([201, "true"]);
    await expectSettled(api.client, system.control, [answer.json.id ?? ""]);
  });

  it.each(["applied", "none"] as const)(
    "comes to one charge when API and worker die while the provider holds the call, its effect %s",
    async (effect) => {
      const hold = { type: effect === "applied" ? "hang" : "reset", effect, hang_ms: null } as const;
      const fault =
        effect === "applied" ? hold : ({ type: "hang", effect: "later", arrival: "in_network" } as const);
      await system.control.addFault({ match: { call: "payment_intents.confirm" }, fault });
      const key = newKey();
      const doomedApi = await system.api();
      const doomedWorker = await system.worker();
      const lost = expect(doomedApi.client.pay(VISA, { key })).rejects.toThrow();
      await system.control.waitForHeld();
      await Promise.all([doomedApi.process.crash(), doomedWorker.process.crash()]);
      await lost;
      await system.control.release({ outcome: "drop" });

      const api = await system.api();
      const running = await api.client.pay(VISA, { key });
      expect([running.status, running.json.code]).toEqual([409, "idempotency_key_in_progress"]);
      await system.worker();
      const answer = await api.client.pay(VISA, { key, prefer: "wait=15" });
      expect([answer.status, answer.headers.get("Idempotent-Replayed")]).toEqual([201, "true"]);
      await expectSettled(api.client, system.control, [answer.json.id ?? ""]);
      expect(blindSends(await system.control.listRequests())).toEqual([]);
    },
  );
});
