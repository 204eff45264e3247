import { describe, expect, it } from "vitest";
import type { ApiClient } from "../support/api-client.js";
import { describeWithFaults } from "../support/e2e-target.js";
import { AUTOMATIC, deliveriesOf, made, post } from "../support/merchant.js";
import { usePair } from "../support/pair.js";
import { answerWith, type Behaviour } from "../support/receiver.js";
import { DELIVERING, type Subscriber, untilTold, useSubscribers } from "../support/subscriber.js";
import { until } from "../support/until.js";

const PAYMENTS = 25;
const SIDE_BY_SIDE = 5;
const SOON_MS = 5_000;
/** A machine that is busy with other things is slow with good receivers alone, too: that is measured first. */
const SLOWER = 6;
const LEASE_MARGIN_MS = 5_000;

const hang: Behaviour = () => undefined;
const reset: Behaviour = (answer) => void answer.socket?.resetAndDestroy();
const drip: Behaviour = (answer) => {
  answer.writeHead(200);
  const timer = setInterval(() => answer.write("."), 50);
  answer.on("close", () => clearInterval(timer));
};

describeWithFaults("receivers, of two workers", () => {
  const pair = usePair(DELIVERING);
  const merchants = useSubscribers(pair);

  async function pay(client: ApiClient): Promise<string[]> {
    const ids: string[] = [];
    for (let paid = 0; paid < PAYMENTS; paid += SIDE_BY_SIDE) {
      const payments = Array.from({ length: SIDE_BY_SIDE }, () => made(client, AUTOMATIC));
      ids.push(...(await Promise.all(payments)).map((payment) => payment.id));
    }
    return ids;
  }

  /** How long each event of these payments was on its way to it, from the commit of its fact on. */
  async function delaysAt(subscriber: Subscriber, ids: readonly string[]): Promise<number[]> {
    const all = await until(
      "both events of each payment",
      () => ids.flatMap((id) => subscriber.about(id)),
      (requests) => requests.length >= 2 * ids.length,
    );
    expect(all).toHaveLength(2 * ids.length);
    return all.map((one) => performance.timeOrigin + one.atMs - Date.parse(one.event.created_at));
  }

  it("that hang, refuse, reset or never end their answer delay neither another tenant's nor that tenant's other one", async () => {
    const other = await pair.stranger();
    const alone = await merchants.subscribe();
    const patience = Math.max(SOON_MS, SLOWER * Math.max(...(await delaysAt(alone, await pay(pair.client)))));
    await alone.unsubscribe();
    const bad = await Promise.all(
      [hang, answerWith(500), reset, drip].map((behaviour) => merchants.subscribe(behaviour)),
    );
    const [beside, healthy] = [
      await merchants.subscribe(),
      await merchants.subscribe(undefined, { client: other }),
    ];
    const [ours, theirs] = await Promise.all([pay(pair.client), pay(other)]);
    for (const delays of [await delaysAt(healthy, theirs), await delaysAt(beside, ours)]) {
      expect(Math.max(...delays)).toBeLessThan(patience);
    }
    const faults = ["timeout", "status", "connection_lost", "timeout"];
    for (const [at, one] of bad.entries()) {
      await until(
        `a failed try at the ${faults[at]} one`,
        () => deliveriesOf(pair.client, one.id),
        (all) => all.some((delivery) => delivery.last_error === faults[at]),
      );
      await one.unsubscribe();
    }
    await beside.unsubscribe();
  });

  it("whose worker is killed while they think about it get the event again from another one, and nothing before it is done", async () => {
    const merchant = await merchants.subscribe((answer, nth, received) => {
      if (nth > 1) answerWith(200)(answer, nth, received);
    });
    await pair.system.crashWorkers();
    const doomed = await pair.system.worker();
    const payment = await made(pair.client, AUTOMATIC);
    const [first] = await untilTold(merchant, payment.id, ["payment.created"]);
    await doomed.process.crash();
    await pair.workers();
    const requests = await untilTold(merchant, payment.id, ["payment.succeeded"]);
    expect(requests.map((one) => one.event.type)).toEqual([
      "payment.created",
      "payment.created",
      "payment.succeeded",
    ]);
    expect(requests[1]?.event.id).toBe(first?.event.id);
    expect(requests[1]?.body.equals(first?.body ?? Buffer.alloc(0))).toBe(true);
    // Taken over within the lease: the deadline of a try and a margin.
    const [gap = 0] = requests.slice(1).map((one) => one.atMs - (first?.atMs ?? 0));
    expect(gap).toBeLessThan(Number(DELIVERING.WEBHOOK_TIMEOUT_MS) + LEASE_MARGIN_MS + SOON_MS);
    await merchant.unsubscribe();
  });

  it("whose worker is told to stop while they think about it are waited for, and the event is not sent again", async () => {
    let answerNow = (): void => undefined;
    const merchant = await merchants.subscribe(
      (answer, nth, received) => {
        answerNow = () => answerWith(200, "late")(answer, nth, received);
      },
      { events: ["payment.succeeded"] },
    );
    await pair.system.crashWorkers();
    const stopping = await pair.system.worker({ WEBHOOK_TIMEOUT_MS: "4000" });
    const payment = await made(pair.client, AUTOMATIC);
    await untilTold(merchant, payment.id, ["payment.succeeded"]);
    const stopped = stopping.process.stop();
    await stopping.process.says("stopping");
    answerNow();
    expect((await stopped).code).toBe(0);
    expect(await deliveriesOf(pair.client, merchant.id)).toMatchObject([
      { state: "delivered", tries: 1, last_answer: "late" },
    ]);
    await pair.workers();
    const next = await merchants.subscribe();
    const later = await made(pair.client, AUTOMATIC);
    await untilTold(next, later.id, ["payment.succeeded"]);
    expect(merchant.about(payment.id)).toHaveLength(1);
    await merchant.unsubscribe();
    await next.unsubscribe();
  });

  it("that send it elsewhere are not followed: that is a failed try, and is seen", async () => {
    const elsewhere = await merchants.subscribe(undefined, { events: ["payment.canceled"] });
    const redirecting = await Promise.all(
      [301, 302, 303, 307, 308].map((status) =>
        merchants.subscribe((answer) => void answer.writeHead(status, { Location: elsewhere.url }).end(), {
          events: ["payment.succeeded"],
        }),
      ),
    );
    await made(pair.client, AUTOMATIC);
    for (const one of redirecting) {
      await until(
        "every try of it redirected",
        () => deliveriesOf(pair.client, one.id),
        ([only]) => only?.state === "failed" && only.last_error === "redirect",
      );
      await one.unsubscribe();
    }
    expect(elsewhere.received).toEqual([]);
    await elsewhere.unsubscribe();
  });

  describe("inside, where nobody has allowed them", () => {
    it("are refused with one answer, whatever is there, and nothing is connected to", async () => {
      const { port, connections } = merchants.receiver;
      const api = await pair.system.api({ WEBHOOK_ALLOW_PRIVATE_TARGETS: "false" });
      const urls = [
        "https://169.254.169.254/latest/meta-data",
        `https://localhost:${port}/`,
        `https://127.0.0.1:${port}/`,
        "https://127.0.0.1:1/",
        `https://127.1:${port}/`,
        `https://0x7f.1:${port}/`,
        `https://0177.0.0.1:${port}/`,
        `https://2130706433:${port}/`,
        `https://[::1]:${port}/`,
        `https://[::ffff:127.0.0.1]:${port}/`,
        `https://[::ffff:7f00:1]:${port}/`,
        `https://[64:ff9b::7f00:1]:${port}/`,
        `https://[fd00::1]:${port}/`,
        `https://0.0.0.0:${port}/`,
        "https://10.0.0.1/",
        "https://172.16.0.1/",
        "https://192.168.0.1/",
        "https://100.64.0.1/",
        "https://224.0.0.1/",
        "https://user@example.com/",
        "https://:secret@example.com/",
        "http://93.184.216.34/",
        "ftp://93.184.216.34/",
        "file:///etc/passwd",
        merchants.receiver.url(),
      ];
      const answers = await Promise.all(
        urls.map((url) => post(api.client, "/v1/webhook_endpoints", { url })),
      );
      const told = answers.map(({ json }) => JSON.stringify({ ...json, request_id: "" }));
      expect(new Set(told).size).toBe(1);
      expect(answers[0]).toMatchObject({ status: 400, json: { code: "validation_failed" } });
      expect(merchants.receiver.connections).toBe(connections);
      await api.process.stop();
    });

    it("are not connected to either when they were registered before, and that is seen", async () => {
      const merchant = await merchants.subscribe();
      await pair.workers({ WEBHOOK_ALLOW_PRIVATE_TARGETS: "false" });
      const { connections } = merchants.receiver;
      const payment = await made(pair.client, AUTOMATIC);
      const deliveries = await until(
        "a try that was refused",
        () => deliveriesOf(pair.client, merchant.id),
        ([first]) => first?.last_error === "address_refused",
      );
      expect(deliveries[0]).toMatchObject({
        event_type: "payment.created",
        last_status: null,
        last_answer: null,
      });
      expect(merchants.receiver.connections).toBe(connections);
      await pair.workers();
      await untilTold(merchant, payment.id, ["payment.created", "payment.succeeded"]);
      await merchant.unsubscribe();
    });
  });
});
