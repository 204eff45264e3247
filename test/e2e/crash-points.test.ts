import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import type { FaultRuleInput } from "../../src/sandbox/index.js";
import { DECLINED, VISA } from "../support/api-client.js";
import { describeWithFaults } from "../support/e2e-target.js";
import { blindSends, expectSettled } from "../support/settle.js";
import { type Api, type System, startFaultySystem } from "../support/system.js";

const TEST_TIMEOUT_MS = 30_000;

/** How a payment goes: what is asked for, what the provider does on the way, and what it must come to. */
interface Course {
  readonly body: object;
  readonly faults: readonly FaultRuleInput[];
  readonly env?: Readonly<Record<string, string>>;
  readonly status: string;
  readonly points: readonly string[];
}

const lost = (call: string, effect: "applied" | "none"): FaultRuleInput => ({
  match: { call },
  fault: { type: "reset", effect },
});

const SENDS = [
  "before_create",
  "after_create",
  "after_record",
  "before_confirm",
  "after_confirm",
  "after_record#2",
];

const COURSES: Readonly<Record<string, Course>> = {
  "a success": { body: VISA, faults: [], status: "succeeded", points: ["after_claim", ...SENDS] },
  "a decline": {
    body: DECLINED,
    faults: [],
    status: "failed",
    points: [
      ...SENDS,
      "before_fence",
      "after_fence",
      "after_record#3",
      "before_get",
      "after_get",
      "after_record#4",
    ],
  },
  "a success whose create was answered into the void": {
    body: VISA,
    faults: [lost("payment_intents.create", "applied")],
    status: "succeeded",
    points: ["before_find", "after_find", "after_record", "after_claim#2"],
  },
  "a success whose create never arrived": {
    body: VISA,
    faults: [lost("payment_intents.create", "none")],
    status: "succeeded",
    points: ["before_find", "after_find", "before_create#2", "after_create#2"],
  },
  "a success whose confirm was answered into the void": {
    body: VISA,
    faults: [lost("payment_intents.confirm", "applied")],
    status: "succeeded",
    points: ["before_get", "after_get", "after_record#2", "after_record#3"],
  },
  "a success whose confirm never arrived": {
    body: VISA,
    faults: [lost("payment_intents.confirm", "none")],
    status: "succeeded",
    points: ["before_get", "after_get", "before_confirm#2", "after_confirm#2"],
  },
  "a charge that could not be confirmed within its budget": {
    body: VISA,
    faults: [
      { match: { call: "payment_intents.confirm" }, times: null, fault: { type: "reset", effect: "none" } },
    ],
    env: { ATTEMPT_RETRY_BUDGET_MS: "1000" },
    status: "failed",
    points: ["before_fence", "after_fence"],
  },
};

describeWithFaults("a worker is killed between two steps of an attempt", () => {
  let system: System;
  let api: Api;

  beforeAll(async () => {
    system = await startFaultySystem({ env: { PROVIDER_TIMEOUT_MS: "500", ATTEMPT_LEASE_MS: "1000" } });
    api = await system.api();
  });
  afterEach(async () => {
    await system.crashWorkers();
    await system.control.clearFaults();
    await system.control.clearRequests();
  });
  afterAll(() => system.drop());

  const cases = Object.entries(COURSES).flatMap(([name, course]) =>
    course.points.map((point) => [name, point, course] as const),
  );
  it.each(cases)(
    "%s, killed at %s: another worker ends it with one effect, asking before it sends",
    async (_name, point, course) => {
      for (const fault of course.faults) await system.control.addFault(fault);
      const doomed = await system.worker({ ...course.env, PAWL_PROBES: `${point}=kill` });
      const accepted = await api.client.pay(course.body, { prefer: "respond-async" });
      expect(accepted.status).toBe(202);
      const id = accepted.json.id ?? "";

      expect((await doomed.process.exited).signal).toBe("SIGKILL");
      const heir = await system.worker(course.env);

      await expectSettled(api.client, system.control, [id]);
      expect((await api.client.payment(id)).status).toBe(course.status);
      expect((await heir.process.stop()).code).toBe(0);
      expect(blindSends(await system.control.listRequests())).toEqual([]);
    },
    TEST_TIMEOUT_MS,
  );
});
