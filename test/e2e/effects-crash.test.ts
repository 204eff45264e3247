import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import type { FaultRuleInput } from "../../src/sandbox/index.js";
import { type ApiClient, newKey, type PaymentDocument } from "../support/api-client.js";
import { expectOneTruth, unaskedSends } from "../support/books.js";
import { describeWithFaults } from "../support/e2e-target.js";
import {
  AUTOMATIC,
  cancel,
  capture,
  MANUAL,
  made,
  objectIdOf,
  refund,
  refundsOf,
} from "../support/merchant.js";
import { type System, startFaultySystem } from "../support/system.js";

interface Course {
  readonly body: object;
  readonly faults: readonly FaultRuleInput[];
  readonly points: readonly string[];
  readonly status: number;
  send(client: ApiClient, id: string, options: { key: string; prefer: string }): ReturnType<typeof capture>;
}

const lost = (call: string, effect: "applied" | "none"): FaultRuleInput => ({
  match: { call },
  fault: { type: "reset", effect },
});

const CAPTURE = {
  body: MANUAL,
  status: 200,
  send: (client, id, options) => capture(client, id, { amount: 6_000 }, options),
} satisfies Partial<Course>;
const CANCEL = {
  body: MANUAL,
  status: 200,
  send: (client, id, options) => cancel(client, id, undefined, options),
} satisfies Partial<Course>;
const REFUND = {
  body: AUTOMATIC,
  status: 201,
  send: (client, id, options) => refund(client, id, { amount: 4_000 }, options),
} satisfies Partial<Course>;

const COURSES: Readonly<Record<string, Course>> = {
  "a capture": {
    ...CAPTURE,
    faults: [],
    points: ["after_claim", "before_capture", "after_capture", "after_record"],
  },
  "a capture that was answered into the void": {
    ...CAPTURE,
    faults: [lost("payment_intents.capture", "applied")],
    points: ["after_record", "before_get", "after_get", "after_record#2"],
  },
  "a capture that never arrived": {
    ...CAPTURE,
    faults: [lost("payment_intents.capture", "none")],
    points: ["after_get", "before_capture#2", "after_capture#2"],
  },
  "a cancel": {
    ...CANCEL,
    faults: [],
    points: ["after_claim", "before_cancel", "after_cancel", "after_record"],
  },
  "a cancel that was answered into the void": {
    ...CANCEL,
    faults: [lost("payment_intents.cancel", "applied")],
    points: ["before_get", "after_get", "after_record#2"],
  },
  "a cancel that never arrived": {
    ...CANCEL,
    faults: [lost("payment_intents.cancel", "none")],
    points: ["before_cancel#2", "after_cancel#2"],
  },
  "a refund": {
    ...REFUND,
    faults: [],
    points: ["after_claim", "before_refund", "after_refund", "after_record"],
  },
  "a refund that was answered into the void": {
    ...REFUND,
    faults: [lost("refunds.create", "applied")],
    points: ["before_find_refund", "after_find_refund", "after_record#2"],
  },
  "a refund that never arrived": {
    ...REFUND,
    faults: [lost("refunds.create", "none")],
    points: ["before_refund#2", "after_refund#2"],
  },
  "a refund that is pending": {
    ...REFUND,
    body: { ...AUTOMATIC, payment_method: "pm_card_pendingRefund" },
    faults: [],
    points: ["after_refund", "before_get_refund", "after_get_refund", "after_record#2"],
  },
};

describeWithFaults("a worker is killed between two steps of what follows a charge", () => {
  let system: System;
  let client: ApiClient;
  const payments = new Map<string, PaymentDocument>();
  const cases = Object.entries(COURSES).flatMap(([name, course]) =>
    course.points.map((point) => [name, point, course] as const),
  );

  beforeAll(async () => {
    system = await startFaultySystem({ env: { PROVIDER_TIMEOUT_MS: "500", ATTEMPT_LEASE_MS: "1000" } });
    await system.control.changeSettings({ refund_settles_after_ms: null });
    client = (await system.api()).client;
    await system.worker();
    // Paid before anybody is killed, so that every probe is reached by the effect alone.
    for (const [name, point, course] of cases) payments.set(name + point, await made(client, course.body));
    await system.crashWorkers();
  });
  afterEach(async () => {
    await system.crashWorkers();
    await system.control.clearFaults();
  });
  afterAll(() => system.drop());

  it.each(cases)(
    "%s, killed at %s: another worker ends it with one effect, and the key is answered",
    async (name, point, course) => {
      const payment = payments.get(name + point) as PaymentDocument;
      for (const fault of course.faults) await system.control.addFault(fault);
      const key = newKey();
      const doomed = await system.worker({ PAWL_PROBES: `${point}=kill` });
      const accepted = await course.send(client, payment.id, { key, prefer: "respond-async" });
      expect(accepted.status).toBe(202);
      expect((await doomed.process.exited).signal).toBe("SIGKILL");

      const [before] = await system.control.listRefunds({ payment_intent: objectIdOf(payment) });
      if (before?.status === "pending") await system.control.bank.settleRefund(before.id, "succeed");
      const heir = await system.worker();
      if (name.endsWith("pending")) {
        await refundsOf(client, payment.id);
        const [made] = await system.control.listRefunds({ payment_intent: objectIdOf(payment) });
        if (made?.status === "pending") await system.control.bank.settleRefund(made.id, "succeed");
      }
      const answer = await course.send(client, payment.id, { key, prefer: "wait=20" });
      expect([answer.status, answer.headers.get("Idempotent-Replayed")], answer.text).toEqual([
        course.status,
        "true",
      ]);
      await expectOneTruth(client, system.control, [payment.id]);
      expect((await heir.process.stop()).code).toBe(0);
      expect(unaskedSends(await system.control.listRequests())).toEqual([]);
    },
  );
});
