import { expect, it } from "vitest";
import { DECLINED, newKey, type PaymentDocument } from "../support/api-client.js";
import { describeWithFaults } from "../support/e2e-target.js";
import { useInbox } from "../support/inbox.js";
import {
  AUTOMATIC,
  capture,
  deliveriesOf,
  type EventDocument,
  eventsOf,
  MANUAL,
  made,
  NEEDS_CUSTOMER,
  objectIdOf,
  post,
  readRefund,
  refund,
  typesOf,
  untilShows,
} from "../support/merchant.js";
import { usePair } from "../support/pair.js";
import { answerWith, isSignedWith, type Received } from "../support/receiver.js";
import { deliver, EVENTFUL } from "../support/stripe-sender.js";
import { DELIVERING, type Subscriber, untilTold, useSubscribers } from "../support/subscriber.js";
import { until } from "../support/until.js";

const SCHEDULE_MS = DELIVERING.WEBHOOK_RETRY_SCHEDULE_MS.split(",").map(Number);
/** From one status, those that a payment can have later. */
const LATER: Readonly<Record<string, readonly string[]>> = {
  processing: ["processing", "requires_action", "authorized", "succeeded", "failed", "canceled"],
  requires_action: ["requires_action", "succeeded", "canceled"],
  authorized: ["authorized", "succeeded", "canceled"],
  succeeded: ["succeeded"],
  failed: ["failed"],
};

describeWithFaults("events on their way out, of two workers", () => {
  const pair = usePair({ ...EVENTFUL, ...DELIVERING });
  const inbox = useInbox(pair);
  const merchants = useSubscribers(pair);

  /** Fails the first `count` tries of each event. */
  const failing = (count: number) => {
    const tries = new Map<string, number>();
    return (answer: Parameters<ReturnType<typeof answerWith>>[0], nth: number, received: Received) => {
      const before = tries.get(received.event.id) ?? 0;
      tries.set(received.event.id, before + 1);
      answerWith(before < count ? 500 : 200, `answer ${before + 1}`)(answer, nth, received);
    };
  };

  const typesAt = (subscriber: Subscriber, id: string) => subscriber.about(id).map((one) => one.event.type);
  const gapsOf = (requests: readonly Received[]) =>
    requests.slice(1).map((one, at) => one.atMs - (requests[at]?.atMs ?? 0));

  it("show the fact that they name, in each payment's order, and the payment is that far when it is read on receipt", async () => {
    const reads: Promise<readonly [string, string, string]>[] = [];
    const merchant = await merchants.subscribe((answer, nth, received) => {
      reads.push(readOnReceipt(received.event as unknown as EventDocument));
      answerWith(204)(answer, nth, received);
    });
    const readOnReceipt = async ({ type, data: { object } }: EventDocument) => {
      const told = String(object["status"]);
      const now =
        object["object"] === "refund"
          ? await readRefund(pair.client, object.id)
          : await pair.client.payment(object.id);
      return [type, told, now.status] as const;
    };
    const held = await made(pair.client, MANUAL);
    await capture(pair.client, held.id, { amount: 6_000 });
    await refund(pair.client, held.id, { amount: 1_000 });
    const acting = await made(pair.client, NEEDS_CUSTOMER);
    await pair.control.authenticate(objectIdOf(acting), "complete");
    const declined = (await pair.client.pay(DECLINED)).json.payment as PaymentDocument;

    const courses = [
      [
        held.id,
        ["payment.created", "payment.authorized", "payment.succeeded", "refund.created", "refund.succeeded"],
      ],
      [acting.id, ["payment.created", "payment.requires_action", "payment.succeeded"]],
      [declined.id, ["payment.created", "payment.failed"]],
    ] as const;
    for (const [id, types] of courses) {
      await untilTold(merchant, id, types);
      expect(typesAt(merchant, id)).toEqual(types);
      // The log has the same documents.
      const told = merchant.about(id).map((one) => one.event);
      expect(told).toEqual(await eventsOf(pair.client, id));
    }
    for (const [type, told, now] of await Promise.all(reads)) {
      const [, fact = ""] = type.split(".");
      expect([type, told]).toEqual([type, fact === "created" ? "processing" : fact]);
      expect(LATER[told]).toContain(now);
    }
    const taken = merchant.about(held.id).find((one) => one.event.type === "payment.succeeded");
    expect(taken?.event.data.object).toMatchObject({
      amount_captured: 6_000,
      amount_capturable: 0,
      amount_refunded: 0,
    });
    for (const one of merchant.received) {
      expect(one.headers["content-type"]).toBe("application/json");
      expect(one.headers["webhook-id"]).toBe(one.event.id);
      expect(isSignedWith(merchant.secret, one)).toBe(true);
    }
    await merchant.unsubscribe();
  });

  it("that are refused come again with growing gaps, the same id and bytes, a time and a signature of their own, over a restart", async () => {
    const merchant = await merchants.subscribe(failing(SCHEDULE_MS.length), {
      events: ["payment.succeeded"],
    });
    const payment = await made(pair.client, AUTOMATIC);
    await until(
      "two tries",
      () => merchant.about(payment.id).length,
      (count) => count >= 2,
    );
    await pair.workers();
    const [delivery] = await until(
      "a delivery that was taken",
      () => deliveriesOf(pair.client, merchant.id),
      ([only]) => only?.state === "delivered",
    );
    const requests = merchant.about(payment.id);
    expect(requests).toHaveLength(SCHEDULE_MS.length + 1);
    for (const [at, gap] of gapsOf(requests).entries())
      expect(gap).toBeGreaterThanOrEqual(SCHEDULE_MS[at] ?? 0);
    expect(new Set(requests.map((one) => one.body.toString())).size).toBe(1);
    expect(new Set(requests.map((one) => one.headers["webhook-id"])).size).toBe(1);
    const stamps = requests.map((one) => Number(one.headers["webhook-timestamp"]));
    expect(stamps.at(-1)).toBeGreaterThan(stamps[0] ?? 0);
    expect(new Set(requests.map((one) => one.headers["webhook-signature"])).size).toBe(new Set(stamps).size);
    for (const one of requests) expect(isSignedWith(merchant.secret, one)).toBe(true);
    expect(delivery).toMatchObject({ tries: 5, last_status: 200, last_error: null, last_answer: "answer 5" });
    await merchant.unsubscribe();
  });

  it("that nobody takes have failed after the last wait, are seen, and are sent again by hand under their id", async () => {
    const merchant = await merchants.subscribe(failing(SCHEDULE_MS.length + 1), {
      events: ["payment.succeeded"],
    });
    const payment = await made(pair.client, AUTOMATIC);
    const [failed] = await until(
      "a delivery that has failed",
      () => deliveriesOf(pair.client, merchant.id),
      ([only]) => only?.state === "failed",
    );
    expect(failed).toMatchObject({
      event_type: "payment.succeeded",
      tries: SCHEDULE_MS.length + 1,
      last_status: 500,
      last_error: "status",
      last_answer: "answer 5",
      next_try_at: null,
    });
    const path = `/v1/events/${failed?.event_id ?? ""}/redeliver`;
    const key = newKey();
    const again = await post(pair.client, path, undefined, { key });
    expect([again.status, again.json["deliveries"]], again.text).toEqual([200, 1]);
    expect((await post(pair.client, path, undefined, { key })).headers.get("Idempotent-Replayed")).toBe(
      "true",
    );
    await until(
      "the delivery by hand",
      () => deliveriesOf(pair.client, merchant.id),
      (all) => all.some((one) => one.state === "delivered"),
    );
    const requests = merchant.about(payment.id);
    expect(requests).toHaveLength(SCHEDULE_MS.length + 2);
    expect(new Set(requests.map((one) => `${one.event.id} ${one.body.toString()}`)).size).toBe(1);
    await merchant.unsubscribe();
  });

  it("come in each payment's order, though each is refused at first, while other payments' go by", async () => {
    const merchant = await merchants.subscribe(failing(1));
    const payments = await Promise.all(
      Array.from({ length: 4 }, async () => {
        const { id } = await made(pair.client, MANUAL);
        await capture(pair.client, id);
        await refund(pair.client, id, { amount: 1_000 });
        await refund(pair.client, id, { amount: 2_000 });
        return id;
      }),
    );
    for (const id of payments) {
      const logged = await eventsOf(pair.client, id);
      expect(logged).toHaveLength(7);
      const requests = await until(
        `two tries of each event of ${id}`,
        () => merchant.about(id),
        (all) => all.length === 2 * logged.length,
      );
      expect(requests.map((one) => one.event.id)).toEqual(logged.flatMap(({ id: event }) => [event, event]));
    }
    await merchant.unsubscribe();
  });

  it("are one for each fact, though the provider tells of it too; a replay and a second telling make none", async () => {
    const merchant = await merchants.subscribe();
    const payment = await made(pair.client, MANUAL);
    await pair.disturb("payment_intents.capture", { fault: { type: "hang", effect: "applied" } });
    const key = newKey();
    const running = capture(pair.client, payment.id, undefined, { key });
    await pair.control.waitForHeld();
    const told = (await inbox.eventOf(payment)).with({});
    expect((await deliver(pair.apis[1].url, told)).status).toBe(200);
    await pair.control.release();
    const answer = await running;
    expect(answer.status).toBe(200);
    const replayed = await capture(pair.apis[1].client, payment.id, undefined, { key });
    expect([replayed.text, replayed.headers.get("Idempotent-Replayed")]).toEqual([answer.text, "true"]);
    expect((await deliver(pair.apis[0].url, told)).status).toBe(200);
    await inbox.untilNothingWaits();

    // What a later payment has sent shows that everything before it is out.
    const later = await made(pair.client, AUTOMATIC);
    await untilTold(merchant, payment.id, ["payment.succeeded"]);
    await untilTold(merchant, later.id, ["payment.succeeded"]);
    const types = ["payment.created", "payment.authorized", "payment.succeeded"];
    expect(typesAt(merchant, payment.id)).toEqual(types);
    expect(await typesOf(pair.client, payment.id)).toEqual(types);
    await merchant.unsubscribe();
  });

  it("do not tell of what was not committed: when the write of it breaks there is none, and one once it stands", async () => {
    const merchant = await merchants.subscribe();
    const payment = await made(pair.client, MANUAL);
    await pair.disturb("payment_intents.capture", { fault: { type: "hang", effect: "applied" } });
    const running = capture(pair.client, payment.id, undefined, { prefer: "wait=20" });
    await pair.control.waitForHeld();
    const lock = await inbox.sql.reserve();
    await lock`begin`;
    await lock`select from payments where id = ${payment.id} for update`;
    await pair.control.release();
    const [writer] = await until(
      "a write that waits for the payment's row",
      () => inbox.sql<{ pid: number }[]>`
        select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      (rows) => rows.length > 0,
    );
    await inbox.sql`select pg_terminate_backend(${writer?.pid ?? 0})`;
    expect(await typesOf(pair.client, payment.id)).toEqual(["payment.created", "payment.authorized"]);
    await lock`rollback`;
    lock.release();
    expect((await running).status).toBe(200);
    await untilShows(pair.client, payment.id, { status: "succeeded" });
    await untilTold(merchant, payment.id, ["payment.succeeded"]);
    expect(typesAt(merchant, payment.id)).toEqual([
      "payment.created",
      "payment.authorized",
      "payment.succeeded",
    ]);
    await pair.expectOneTruth(payment.id);
    await merchant.unsubscribe();
  });
});
