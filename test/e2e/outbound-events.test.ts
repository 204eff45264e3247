import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { type AnyDocument, newKey, VISA } from "../support/api-client.js";
import { describeWithFaults } from "../support/e2e-target.js";
import { RealProcess } from "../support/processes.js";
import { isSignedWith, Receiver } from "../support/receiver.js";
import { type Api, type System, startFaultySystem } from "../support/system.js";
import { until } from "../support/until.js";

/** What a killed process held is taken over while the test waits: an attempt after its lease, a try five seconds after this. */
const TAKEN_OVER_SOON = { PROVIDER_TIMEOUT_MS: "2000", ATTEMPT_LEASE_MS: "4000", WEBHOOK_TIMEOUT_MS: "2000" };
/** A try that a kill cut off counts: none of them leads to a long wait, and no payment is given up over so many. */
const PATIENT = {
  WEBHOOK_RETRY_SCHEDULE_MS: Array<string>(50).fill("200").join(),
  ATTEMPT_RETRY_BUDGET_MS: "600000",
};
/** Fifty kills in all at the first of the points below. */
const ROUNDS = 10;
const KILLED_AT_ONCE = 5;
const PATIENCE_MS = 60_000;

describeWithFaults("processes that are killed between a fact and its receivers", () => {
  let system: System;
  let api: Api;
  let receiver: Receiver;
  let secret: string;

  beforeAll(async () => {
    system = await startFaultySystem({
      env: {
        WEBHOOK_ALLOW_PRIVATE_TARGETS: "true",
        ...TAKEN_OVER_SOON,
        ...PATIENT,
        RELAY_INTERVAL_MS: "20",
        WEBHOOK_INTERVAL_MS: "20",
        WORKERS: "attempts,reconciler,relay,webhooks",
      },
    });
    api = await system.api();
    receiver = await Receiver.start();
    const registered = await api.client.request("POST", "/v1/webhook_endpoints", {
      headers: { "Content-Type": "application/json", "Idempotency-Key": newKey() },
      body: JSON.stringify({ url: receiver.url() }),
    });
    expect(registered.status, registered.text).toBe(201);
    secret = String(registered.json["secret"]);
  });
  afterEach(() => system.crashWorkers());
  afterAll(async () => {
    await receiver.stop();
    await system.drop();
  });

  it.each([
    ["right after a state was committed", "after_record"],
    ["before an event is sent", "before_delivery"],
    ["after an event was sent, and before that is written down", "after_delivery"],
  ])("%s lose no event, and each payment's come in order", async (_, point) => {
    const rounds = point === "after_record" ? ROUNDS : 1;
    const ids: string[] = [];
    for (let round = 0; round < rounds; round += 1) {
      // Not waited for: what an earlier round has left may kill one before it has said a word.
      const env = system.settings({ PAWL_PROBES: `${point}=kill` });
      const workers = Array.from({ length: KILLED_AT_ONCE }, () => new RealProcess(["worker"], { env }));
      const paid = Array.from({ length: KILLED_AT_ONCE }, () =>
        api.client.pay(VISA, { prefer: "respond-async" }),
      );
      ids.push(...(await Promise.all(paid)).map((answer) => answer.json.id ?? ""));
      expect((await Promise.race(workers.map((worker) => worker.exited))).signal).toBe("SIGKILL");
      // The others die wherever they are.
      await Promise.all(workers.map((worker) => worker.crash()));
    }
    await system.worker();

    const typesOf = (id: string) =>
      receiver.received.filter((one) => one.event.data.object["id"] === id).map((one) => one.event.type);
    await until(
      "both events of each payment",
      () => ids.filter((id) => !typesOf(id).includes("payment.succeeded")),
      (missing) => missing.length === 0,
      PATIENCE_MS,
    );
    for (const id of ids) {
      const firsts = [...new Set(typesOf(id))];
      expect(firsts).toEqual(["payment.created", "payment.succeeded"]);
    }
    const bodies = new Map<string, string>();
    for (const one of receiver.received) {
      expect(isSignedWith(secret, one)).toBe(true);
      const before = bodies.get(one.event.id) ?? one.body.toString();
      expect(one.body.toString()).toBe(before);
      bodies.set(one.event.id, before);
    }
    const logged = await allEvents(api);
    expect(new Set(logged.map((event) => event.id))).toEqual(new Set(bodies.keys()));
    expect(logged).toHaveLength(bodies.size);
  });
});

async function allEvents({ client }: Api): Promise<AnyDocument[]> {
  const events: AnyDocument[] = [];
  for (let cursor = ""; ; ) {
    const page = (await client.get(`/v1/events?limit=100${cursor}`)).json;
    events.push(...((page.data ?? []) as unknown as AnyDocument[]));
    if (page["has_more"] !== true) return events;
    cursor = `&cursor=${String(page["next_cursor"])}`;
  }
}
