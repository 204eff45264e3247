import { describe, expect, test } from "vitest";
import { newId } from "../../src/lib/ids.js";
import { Gate } from "../support/gate.js";
import { answerWith, isSignedWith, type Received } from "../support/receiver.js";
import { until } from "../support/until.js";
import {
  type DeliveryRow,
  deliveriesOf,
  newSecret,
  useWebhookWorld,
  type WebhookWorld,
} from "../support/webhook-stage.js";

const stage = useWebhookWorld();

const untilAll = (world: WebhookWorld, state: string, count: number): Promise<DeliveryRow[]> =>
  until(
    `${count} deliveries ${state}`,
    () => deliveriesOf(world),
    (rows) => rows.length === count && rows.every((row) => row.state === state),
  );
const idsOf = (received: readonly Received[]) => received.map((one) => one.headers["webhook-id"]);

describe("an event", () => {
  test("reaches every endpoint that wants it, signed for each, and shows the fact it names", async () => {
    const world = await stage.start();
    const receiver = await world.receiver();
    const all = await world.endpoint(receiver.url("/all"));
    const one = await world.endpoint(receiver.url("/one"), { events: ["payment.succeeded"] });
    await world.endpoint(receiver.url("/other"), { events: ["payment.failed"] });
    const process = await world.process();
    const object = { object: "payment", status: "succeeded", amount: 4200, description: "žluť €" };
    const id = await world.event({ object });
    await untilAll(world, "delivered", 2);
    expect(receiver.at("/other")).toEqual([]);
    for (const [path, endpoint] of [
      ["/all", all],
      ["/one", one],
    ] as const) {
      const [got, ...more] = receiver.at(path);
      expect(more).toEqual([]);
      expect(isSignedWith(endpoint.secret, got!)).toBe(true);
      expect(isSignedWith(newSecret(), got!)).toBe(false);
      expect(got!.headers["webhook-id"]).toBe(id);
      expect(got!.event).toEqual({
        id,
        object: "event",
        type: "payment.succeeded",
        created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) as string,
        data: { object },
      });
    }
    expect(process.tries).toEqual(["webhook delivered", "webhook delivered"]);
  });

  test("is sent again with growing gaps, the same id and the same bytes, until it is taken, across a restart", async () => {
    const world = await stage.start();
    const receiver = await world.receiver();
    receiver.behave("/", (answer, nth) => answer.writeHead(nth <= 4 ? 500 : 200).end(`answer ${nth}`));
    const { secret } = await world.endpoint(receiver.url());
    const env = { WEBHOOK_RETRY_SCHEDULE_MS: "100,300,900,1200" };
    const first = await world.process({ env });
    const id = await world.event({ object: { object: "payment", metadata: { 7: "a", b: "ž" } } });
    await until(
      "two tries",
      () => receiver.received.length,
      (count) => count >= 2,
    );
    await first.stop();
    await world.process({ env });
    const [row] = await untilAll(world, "delivered", 1);
    expect(row).toMatchObject({
      tries: 5,
      last_status: 200,
      last_error: null,
      last_answer: "answer 5",
      due_at: null,
    });
    expect(idsOf(receiver.received)).toEqual([id, id, id, id, id]);
    expect(new Set(receiver.received.map((one) => one.body.toString("hex"))).size).toBe(1);
    expect(receiver.received.every((one) => isSignedWith(secret, one))).toBe(true);
    expect(new Set(receiver.received.map((one) => one.headers["webhook-timestamp"])).size).toBeGreaterThan(1);
    const gaps = receiver.received.slice(1).map((one, at) => one.atMs - receiver.received[at]!.atMs);
    for (const [at, least] of [100, 300, 900, 1200].entries())
      expect(gaps[at]).toBeGreaterThanOrEqual(least - 5);
  });

  test("that nobody takes has failed after the last wait of the schedule, and is seen", async () => {
    const world = await stage.start();
    const receiver = await world.receiver();
    receiver.behave("/", answerWith(503, "down for ever"));
    await world.endpoint(receiver.url());
    const process = await world.process({ env: { WEBHOOK_RETRY_SCHEDULE_MS: "10,20,30" } });
    await world.event();
    const [row] = await untilAll(world, "failed", 1);
    expect(row).toMatchObject({
      tries: 4,
      last_status: 503,
      last_error: "status",
      last_answer: "down for ever",
      due_at: null,
    });
    expect(receiver.received).toHaveLength(4);
    expect(process.tries).toEqual([...Array<string>(3).fill("webhook retrying"), "webhook failed"]);
    expect(process.logLines.join()).not.toMatch(/whsec_|http:/);
  });
});

describe("the events of one payment", () => {
  test("arrive in their order, however often one is refused, while another payment's go by", async () => {
    const world = await stage.start();
    const receiver = await world.receiver();
    const paymentId = newId("pay");
    const ids: string[] = [];
    for (const [sequence, ordinal] of [
      [1, 0],
      [2, 0],
      [2, 1],
      [3, 0],
    ] as const) {
      ids.push(`evt_${sequence}${ordinal}${"0".repeat(30)}`);
    }
    const other = newId("evt");
    let refusals = 3;
    receiver.behave("/", (answer, _, { event }) => {
      const refuse = event.id === ids[1] && refusals > 0;
      if (refuse) refusals -= 1;
      answer.writeHead(refuse ? 500 : 200).end();
    });
    await world.endpoint(receiver.url());
    // Written backwards, as no place in the table but the sequence decides.
    for (const id of [...ids].reverse()) {
      await world.event({ id, paymentId, sequence: Number(id[4]), ordinal: Number(id[5]) });
    }
    await world.event({ id: other });
    await world.process({ env: { WEBHOOK_RETRY_SCHEDULE_MS: "50,50,50,50" } });
    await untilAll(world, "delivered", 5);
    const arrived = idsOf(receiver.received);
    expect(arrived.filter((id) => id !== other)).toEqual([
      ids[0],
      ids[1],
      ids[1],
      ids[1],
      ids[1],
      ids[2],
      ids[3],
    ]);
    expect(arrived.indexOf(other)).toBeLessThan(arrived.indexOf(ids[2]));
  });

  test("go on after one that has finally failed, and do not wait for another endpoint's", async () => {
    const world = await stage.start();
    const receiver = await world.receiver();
    const paymentId = newId("pay");
    const [first, second] = [newId("evt"), newId("evt")];
    receiver.behave("/bad", (answer, _, { event }) => answer.writeHead(event.id === first ? 500 : 200).end());
    const bad = await world.endpoint(receiver.url("/bad"));
    const good = await world.endpoint(receiver.url("/good"));
    await world.event({ id: first, paymentId, sequence: 1 });
    await world.event({ id: second, paymentId, sequence: 2 });
    await world.process({ env: { WEBHOOK_RETRY_SCHEDULE_MS: "300" } });
    await until(
      "the good endpoint's two",
      () => receiver.at("/good").length,
      (count) => count === 2,
    );
    expect(idsOf(receiver.at("/bad"))).toEqual([first]);
    const rows = await until(
      "an end of all",
      () => deliveriesOf(world),
      (seen) => seen.every((row) => row.state !== "pending"),
    );
    expect(rows.map((row) => [row.endpoint_id, row.event_id, row.state])).toEqual([
      [bad.id, first, "failed"],
      [bad.id, second, "delivered"],
      [good.id, first, "delivered"],
      [good.id, second, "delivered"],
    ]);
    expect(idsOf(receiver.at("/bad"))).toEqual([first, first, second]);
    expect(idsOf(receiver.at("/good"))).toEqual([first, second]);
  });
});

describe("two workers", () => {
  test("deliver each event once between them, each payment's in order", async () => {
    const world = await stage.start();
    const receiver = await world.receiver();
    await world.endpoint(receiver.url());
    const payments = Array.from({ length: 40 }, () => newId("pay"));
    for (const sequence of [1, 2, 3]) {
      await Promise.all(
        payments.map((paymentId) => world.event({ paymentId, sequence, object: { paymentId, sequence } })),
      );
    }
    // Nothing may stay behind until a lease ends, which is longer than this test waits.
    const env = { WEBHOOK_TIMEOUT_MS: "60000" };
    const workers = [await world.process({ env }), await world.process({ env })];
    await untilAll(world, "delivered", 120);
    expect(receiver.received).toHaveLength(120);
    for (const paymentId of payments) {
      const order = receiver.received
        .map((one) => one.event.data.object)
        .filter((object) => object["paymentId"] === paymentId);
      expect(order.map((object) => object["sequence"])).toEqual([1, 2, 3]);
    }
    expect(workers.map((worker) => worker.tries.length > 0)).toEqual([true, true]);
  });
});

describe("a worker that dies with a delivery in its hands", () => {
  test.each(["before_delivery", "after_delivery"])(
    "%s is followed by another one after the lease, and changes nothing when it comes back",
    async (point) => {
      const world = await stage.start();
      const receiver = await world.receiver();
      await world.endpoint(receiver.url());
      const gate = new Gate(point);
      const dead = await world.process({ probe: gate.probe });
      const id = await world.event();
      await gate.reached();
      await dead.freeze();
      const other = await world.process();
      // Under the lease nobody touches it.
      const early = await world.event();
      await until(
        "the other event",
        () => idsOf(receiver.received).includes(early),
        (came) => came,
      );
      const before = receiver.received.filter((one) => one.event.id === id).length;
      expect(before).toBe(point === "before_delivery" ? 0 : 1);
      await world.sql`update deliveries set due_at = now() where event_id = ${id}`;
      await untilAll(world, "delivered", 2);
      gate.open();
      await dead.stop();
      const bodies = receiver.received.filter((one) => one.event.id === id).map((one) => one.body.toString());
      expect(bodies).toHaveLength(2);
      expect(bodies[0]).toBe(bodies[1]);
      expect(dead.tries).toEqual(["webhook lost"]);
      expect(other.tries).toEqual(["webhook delivered", "webhook delivered"]);
      expect((await deliveriesOf(world)).find((row) => row.event_id === id)).toMatchObject({
        state: "delivered",
        tries: 2,
      });
    },
  );

  test("and whose try failed cannot make a delivery pending again that another has made", async () => {
    const world = await stage.start();
    const receiver = await world.receiver();
    receiver.behave("/", (answer, nth) => answer.writeHead(nth === 1 ? 500 : 200).end());
    await world.endpoint(receiver.url());
    const gate = new Gate("after_delivery");
    const late = await world.process({ probe: gate.probe });
    await world.event();
    await gate.reached();
    await late.freeze();
    await world.process();
    await world.sql`update deliveries set due_at = now()`;
    const [delivered] = await untilAll(world, "delivered", 1);
    gate.open();
    await late.stop();
    expect(late.tries).toEqual(["webhook lost"]);
    expect(await deliveriesOf(world)).toEqual([delivered]);
  });

  test("cannot write of a try that another has under way", async () => {
    const world = await stage.start();
    const receiver = await world.receiver();
    receiver.behave("/", (answer, nth) => answer.writeHead(nth === 1 ? 500 : 200).end());
    await world.endpoint(receiver.url());
    const [lateGate, otherGate] = [new Gate("after_delivery"), new Gate("after_delivery")];
    const late = await world.process({ probe: lateGate.probe });
    await world.event();
    await lateGate.reached();
    await late.freeze();
    const other = await world.process({ probe: otherGate.probe });
    await world.sql`update deliveries set due_at = now()`;
    await otherGate.reached();
    const [leased] = await deliveriesOf(world);
    lateGate.open();
    await late.stop();
    expect(late.tries).toEqual(["webhook lost"]);
    expect(await deliveriesOf(world)).toEqual([leased]);
    otherGate.open();
    expect(await untilAll(world, "delivered", 1)).toMatchObject([{ tries: 2, last_status: 200 }]);
    expect(other.tries).toEqual(["webhook delivered"]);
  });
});
