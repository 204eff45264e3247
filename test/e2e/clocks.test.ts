import postgres from "postgres";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { type ApiClient, newKey, VISA } from "../support/api-client.js";
import { describeWithFaults } from "../support/e2e-target.js";
import { clockAhead } from "../support/faketime.js";
import { describeWithProgram } from "../support/needs-program.js";
import { expectSettled } from "../support/settle.js";
import { type System, startFaultySystem, untilStatus } from "../support/system.js";
import { until } from "../support/until.js";

const AHEAD_SECONDS = 90;
const RETENTION_HOURS = 0.001;
const RETENTION_MS = RETENTION_HOURS * 3_600_000;
/** Contract: keys expire at retention, give or take a second. */
const TOLERANCE_MS = 1_000;

describeWithProgram("faketime", "clocks and zones that differ", (faketime) => {
  const tokyo = { TZ: "Asia/Tokyo" };
  const ahead = clockAhead(faketime, AHEAD_SECONDS);

  describeWithFaults("API, workers and database", () => {
    let system: System;

    beforeAll(async () => {
      system = await startFaultySystem();
      const admin = postgres(system.adminUrl ?? "", { max: 1 });
      const [row] = await admin`select current_database() as name`;
      await admin`alter database ${admin(String(row?.["name"]))} set timezone to 'America/New_York'`;
      await admin.end();
    });
    afterEach(async () => {
      await system.control.release();
      await system.crashWorkers();
      await system.control.clearRequests();
    });
    afterAll(() => system.drop());

    it("agree on when a payment was made, in UTC", async () => {
      const apis = [await system.api(tokyo), await system.api(ahead)];
      await system.worker(ahead);
      for (const api of apis) {
        const sentMs = Date.now();
        const paid = await api.client.pay(VISA);
        expect(paid.status, paid.text).toBe(201);
        for (const time of [paid.json.created_at, paid.json.updated_at]) {
          expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
          expect(Date.parse(time ?? "")).toBeGreaterThanOrEqual(sentMs - 50);
          expect(Date.parse(time ?? "")).toBeLessThanOrEqual(Date.now() + 50);
        }
        const since = new Date(sentMs - 50).toISOString();
        const listed = await apis[0]?.client.get(`/v1/payments?created_after=${since}`);
        expect(listed?.json.data?.map((one) => one.id)).toContain(paid.json.id);
      }
    });

    it("expire a key at its retention, whoever is asked and whoever finished it", async () => {
      const env = { IDEMPOTENCY_RETENTION_HOURS: String(RETENTION_HOURS), PURGE_INTERVAL_MS: "200" };
      const apis = [await system.api({ ...env, ...tokyo }), await system.api({ ...env, ...ahead })];
      await system.worker({ ...env, ...ahead });
      const key = newKey();
      const paid = await (apis[0]?.client as ApiClient).pay(VISA, { key });
      const finishedMs = Date.now();
      expect(paid.status).toBe(201);
      const promisedMs = Date.parse(paid.headers.get("Idempotency-Key-Expires") ?? "");
      expect(Math.abs(promisedMs - finishedMs - RETENTION_MS)).toBeLessThan(TOLERANCE_MS);

      const lifetimes = await Promise.all(
        apis.map(async ({ client }) => {
          const expired = await until(
            "an expired key",
            () => client.pay(VISA, { key }),
            (answer) => answer.status !== 201,
          );
          expect([expired.status, expired.json.code, expired.json.payment?.id]).toEqual([
            409,
            "idempotency_key_expired",
            paid.json.id,
          ]);
          return Date.now() - finishedMs;
        }),
      );
      for (const lifetime of lifetimes) expect(Math.abs(lifetime - RETENTION_MS)).toBeLessThan(TOLERANCE_MS);
    });

    it.each([
      ["whose clock is ahead", {}, ahead],
      ["whose clock is behind the holder's", ahead, {}],
    ])("leave a live lease alone in the eyes of a worker %s", async (_name, holderClock, otherClock) => {
      const patient = { PROVIDER_TIMEOUT_MS: "15000", ATTEMPT_LEASE_MS: "30000" };
      const api = await system.api(tokyo);
      // Full with the one attempt that it holds, so that the other worker does everything else.
      await system.worker({ ...patient, ...holderClock, WORKER_CONCURRENCY: "1" });
      await system.control.addFault({
        match: { call: "payment_intents.confirm" },
        fault: { type: "hang", effect: "applied" },
      });
      const accepted = await api.client.pay(VISA, { prefer: "respond-async" });
      const [held] = await system.control.waitForHeld();
      await system.worker({ ...patient, ...otherClock, RECONCILE_INTERVAL_MS: "20", POLL_INTERVAL_MS: "20" });
      for (let others = 0; others < 10; others += 1) expect((await api.client.pay(VISA)).status).toBe(201);

      const touched = await system.control.listRequests({ object_id: held?.object_id ?? "" });
      expect(touched.map((request) => request.call)).toEqual([
        "payment_intents.create",
        "payment_intents.confirm",
      ]);
      await system.control.release();
      await untilStatus(api.client, accepted.json.id ?? "", ["succeeded"]);
      expect(
        (await api.client.timeline(accepted.json.id ?? ""))
          .map((entry) => entry.fence)
          .filter((fence) => (fence ?? 1) > 1),
      ).toEqual([]);
      await expectSettled(api.client, system.control, [accepted.json.id ?? ""]);
    });
  });
});
