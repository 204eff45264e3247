import postgres from "postgres";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { DECLINED, VISA } from "../support/api-client.js";
import { describeWithFaults } from "../support/e2e-target.js";
import { blindSends, expectSettled } from "../support/settle.js";
import { type Api, type System, startFaultySystem, untilEnded } from "../support/system.js";

interface Stop {
  readonly point: string;
  readonly body: object;
  readonly env?: Readonly<Record<string, string>>;
  /** Of the worker that takes over: it finds the budget over, for instance. */
  readonly heirEnv?: Readonly<Record<string, string>>;
  readonly status: string;
}

const STOPS: Readonly<Record<string, Stop>> = {
  "before its create": { point: "before_create", body: VISA, status: "succeeded" },
  "before its confirm": { point: "before_confirm", body: VISA, status: "succeeded" },
  "before its confirm, which another worker has fenced since": {
    point: "before_confirm",
    body: VISA,
    heirEnv: { ATTEMPT_RETRY_BUDGET_MS: "1" },
    status: "failed",
  },
  "before it cancels a declined object": { point: "before_fence", body: DECLINED, status: "failed" },
  "before it asks about a declined object": { point: "before_get", body: DECLINED, status: "failed" },
  "with the create's answer in its hands": { point: "after_create", body: VISA, status: "succeeded" },
  "with the confirm's answer in its hands": { point: "after_confirm", body: VISA, status: "succeeded" },
  "with a decline in its hands": { point: "after_confirm", body: DECLINED, status: "failed" },
};

/** What ends attempts alone: another worker of the process would rightly write about them, the relay for one. */
const ATTEMPTS_ALONE = { WORKERS: "attempts,reconciler" };

describeWithFaults(
  "a worker is stopped past its lease and goes on after another has ended the attempt",
  () => {
    let system: System;
    let api: Api;
    let admin: postgres.Sql;

    beforeAll(async () => {
      system = await startFaultySystem({ env: { PROVIDER_TIMEOUT_MS: "500", ATTEMPT_LEASE_MS: "1000" } });
      api = await system.api();
      admin = postgres(system.adminUrl ?? "", { max: 1, onnotice: () => undefined });
    });
    afterEach(async () => {
      await system.crashWorkers();
      await system.control.clearRequests();
    });
    afterAll(async () => {
      await admin.end();
      await system.drop();
    });

    /** Every row that a write about a payment could touch. */
    const written = () =>
      Promise.all(
        ["attempts", "payments", "timeline", "outbox", "idempotency_keys", "reviews"].map(
          (table) => admin`select t::text as row from ${admin(table)} t order by 1`,
        ),
      );

    it.each(Object.entries(STOPS))(
      "stopped %s, it makes no further call and writes nothing",
      async (_name, stop) => {
        const late = await system.worker({
          ...ATTEMPTS_ALONE,
          ...stop.env,
          PAWL_PROBES: `${stop.point}=stop`,
        });
        const accepted = await api.client.pay(stop.body, { prefer: "respond-async" });
        const id = accepted.json.id ?? "";
        await late.process.stopped();
        const heir = await system.worker({ ...ATTEMPTS_ALONE, ...stop.heirEnv });
        expect((await untilEnded(api.client, id)).status).toBe(stop.status);
        expect((await heir.process.stop()).code).toBe(0);
        const [calls, rows] = [await system.control.listRequests(), await written()];

        late.process.kill("SIGCONT");
        await late.process.says(
          stop.point.startsWith("before") ? "no call: the lease is over" : "attempt lost",
        );
        expect((await late.process.stop()).code).toBe(0);

        expect(await system.control.listRequests()).toEqual(calls);
        expect(await written()).toEqual(rows);
        await expectSettled(api.client, system.control, [id]);
        expect(blindSends(calls)).toEqual([]);
      },
    );

    it("stopped with a look in its hands that moves nothing, it writes nothing: the fence alone tells it", async () => {
      const late = await system.worker({ ...ATTEMPTS_ALONE, PAWL_PROBES: "after_get=stop" });
      // It waits for its customer, so it is looked at again and again, and each look leaves the state as it is.
      const body = {
        ...VISA,
        payment_method: "pm_card_authenticationRequired",
        return_url: "https://shop.example/",
      };
      const acting = await api.client.pay(body, { prefer: "wait=10" });
      expect(acting.json.status).toBe("requires_action");
      await late.process.stopped();
      const looks = { object_id: acting.json.provider_payment_id ?? "", call: "payment_intents.retrieve" };
      const [first] = (await system.control.listRequests(looks)).slice(-1);
      // It leaves the next look to a time that this test does not see.
      const heir = await system.worker({
        ...ATTEMPTS_ALONE,
        FOLLOW_FIRST_MS: "60000",
        FOLLOW_MOST_MS: "60000",
      });
      await system.control.waitForRequests({
        filter: { ...looks, after_sequence: first?.sequence ?? 0 },
        until: "settled",
      });
      expect((await heir.process.stop()).code).toBe(0);
      const rows = await written();

      late.process.kill("SIGCONT");
      await late.process.says("attempt lost");
      expect((await late.process.stop()).code).toBe(0);
      expect(await written()).toEqual(rows);
    });
  },
);
