import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import type { FaultRuleInput } from "../../src/sandbox/index.js";
import { type ApiClient, newKey, type PaymentDocument } from "../support/api-client.js";
import { expectOneTruth, unaskedSends } from "../support/books.js";
import { describeWithFaults } from "../support/e2e-target.js";
import { AUTOMATIC, cancel, capture, MANUAL, made, objectIdOf, refund } from "../support/merchant.js";
import { type System, startFaultySystem } from "../support/system.js";

interface SendOptions {
  readonly key: string;
  readonly prefer: string;
}

interface Course {
  readonly body: object;
  readonly faults: readonly FaultRuleInput[];
  readonly points: readonly string[];
  readonly status: number;
  send(client: ApiClient, id: string, options: SendOptions): ReturnType<typeof capture>;
}

const lost = (call: string, effect: "applied" | "none"): FaultRuleInput => ({
  match: { call },
  fault: { type: "reset", effect },
});

const CAPTURE = {
  body: MANUAL,
  status: 200,
  send: (client: ApiClient, id: string, options: SendOptions) =>
    capture(client, id, { amount: 6_000 }, options),
} satisfies Partial<Course>;
const CANCEL = {
  body: MANUAL,
  status: 200,
  send: (client: ApiClient, id: string, options: SendOptions) => cancel(client, id, undefined, options),
} satisfies Partial<Course>;
const REFUND = {
  body: AUTOMATIC,
  status: 201,
  send: (client: ApiClient, id: string, options: SendOptions) =>
    refund(client, id, { amount: 4_000 }, options),
} satisfies Partial<Course>;

const PENDING_REFUND = {
  ...REFUND,
  body: { ...AUTOMATIC, payment_method: "pm_card_pendingRefund" },
} satisfies Partial<Course>;

/** Of each call the points that differ in what the heir finds: nothing sent, sent, written down, asked about. */
const COURSES: Readonly<Record<string, Course>> = {
  "a capture": { ...CAPTURE, faults: [], points: ["before_capture", "after_capture", "after_record"] },
  "a capture that was answered into the void": {
    ...CAPTURE,
    faults: [lost("payment_intents.capture", "applied")],
    points: ["after_record", "after_get"],
  },
  "a capture that never arrived": {
    ...CAPTURE,
    faults: [lost("payment_intents.capture", "none")],
    points: ["after_capture#2"],
  },
  "a cancel": { ...CANCEL, faults: [], points: ["after_claim", "after_cancel"] },
  "a cancel that was answered into the void": {
    ...CANCEL,
    faults: [lost("payment_intents.cancel", "applied")],
    points: ["before_get"],
  },
  "a cancel that never arrived": {
    ...CANCEL,
    faults: [lost("payment_intents.cancel", "none")],
    points: ["before_cancel#2"],
  },
  "a refund": { ...REFUND, faults: [], points: ["before_refund", "after_refund", "after_record"] },
  "a refund that was answered into the void": {
    ...REFUND,
    faults: [lost("refunds.create", "applied")],
    points: ["after_find_refund"],
  },
  "a refund that never arrived": {
    ...REFUND,
    faults: [lost("refunds.create", "none")],
    points: ["after_refund#2"],
  },
  "a refund that is pending": { ...PENDING_REFUND, faults: [], points: ["after_refund", "after_get_refund"] },
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
    payments.set("heirs", await made(client, CAPTURE.body));
    await system.crashWorkers();
  });
  afterEach(async () => {
    await system.crashWorkers();
    await system.control.clearFaults();
  });
  afterAll(() => system.drop());

  /** Sends the call while the only worker is one that kills itself at this point. */
  async function killedAt(point: string, send: () => ReturnType<typeof capture>): Promise<void> {
    const doomed = await system.worker({ PAWL_PROBES: `${point}=kill` });
    const accepted = await send();
    expect(accepted.status, accepted.text).toBe(202);
    expect((await doomed.process.exited).signal).toBe("SIGKILL");
  }

  it.each(cases)(
    "%s, killed at %s: another worker ends it with one effect, and the key is answered",
    async (name, point, course) => {
      const payment = payments.get(name + point) as PaymentDocument;
      for (const fault of course.faults) await system.control.addFault(fault);
      const key = newKey();
      await killedAt(point, () => course.send(client, payment.id, { key, prefer: "respond-async" }));
      const [refunded] = await system.control.listRefunds({ payment_intent: objectIdOf(payment) });
      if (refunded?.status === "pending") await system.control.bank.settleRefund(refunded.id, "succeed");

      const heir = await system.worker();
      const answer = await course.send(client, payment.id, { key, prefer: "wait=20" });
      expect([answer.status, answer.headers.get("Idempotent-Replayed")], answer.text).toEqual([
        course.status,
        "true",
      ]);
      await expectOneTruth(client, system.control, [payment.id]);
      expect((await heir.process.stop()).code).toBe(0);
    },
  );

  it("a capture, killed after it was sent, and its heir killed once it has asked: a third ends it with one effect", async () => {
    const payment = payments.get("heirs") as PaymentDocument;
    const key = newKey();
    await killedAt("after_capture", () => CAPTURE.send(client, payment.id, { key, prefer: "respond-async" }));
    const heir = await system.worker({ WORKERS: "reconciler", PAWL_PROBES: "after_get=kill" });
    expect((await heir.process.exited).signal).toBe("SIGKILL");
    await system.worker({ WORKERS: "reconciler,ledger" });
    const answer = await CAPTURE.send(client, payment.id, { key, prefer: "wait=20" });
    expect(answer.status, answer.text).toBe(200);
    await expectOneTruth(client, system.control, [payment.id]);
    const sent = { call: "payment_intents.capture", object_id: objectIdOf(payment) };
    expect(await system.control.listRequests(sent)).toHaveLength(1);
  });

  it("asks before it sends again, in all of this", async () => {
    expect(unaskedSends(await system.control.listRequests())).toEqual([]);
  });
});
