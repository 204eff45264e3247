import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Deps } from "../../src/operations/deps.js";
import { Gate } from "../support/gate.js";
import { type Harness, startHarness } from "../support/harness.js";
import {
  chargeEvent,
  emptyInbox,
  eventOf,
  type Inbox,
  inboxOf,
  OPEN_INBOX,
  openInbox,
  randomId,
  type Seeded,
  seedPayment,
  signatureOf,
  WEBHOOK_SECRET,
} from "../support/provider-events.js";
import { TcpProxy } from "../support/tcp-proxy.js";
import { createTestDatabase } from "../support/test-database.js";

let harness: Harness;
let inbox: Inbox;
let ours: Seeded;
beforeAll(async () => {
  harness = await startHarness({ workers: [], env: OPEN_INBOX });
  inbox = await openInbox(harness.deps);
});
beforeEach(async () => {
  ours = await seedPayment(harness);
});
afterEach(() => emptyInbox(harness));
afterAll(async () => {
  await inbox.close();
  await harness.stop();
});

async function payloads(): Promise<string[]> {
  return (await inboxOf(harness)).map((row) => row.payload);
}

function marked(): string {
  const metadata = `"metadata":{"payment_attempt_id":"${ours.attemptId}","tenant_id":"${ours.tenantId}"}`;
  return `{"id":"${randomId("evt")}","type":"payment_intent.succeeded","livemode":false,"data":{"object":{"id":"${ours.objectId}",${metadata}}}}`;
}

test.each(["", "  ", " , "])(
  "with the secret %j the endpoint is closed, to good signatures too",
  async (blank) => {
    const closed = await harness.another({ workers: [], env: { STRIPE_WEBHOOK_SECRET: blank } });
    const shut = await openInbox(closed.deps);
    const body = marked();
    for (const secret of [WEBHOOK_SECRET, "", " "]) {
      const answer = await shut.send(body, { "Stripe-Signature": signatureOf(body, secret) });
      expect(answer.status).toBe(503);
      expect(await answer.json()).toMatchObject({ code: "provider_webhooks_closed" });
      expect(answer.headers.get("retry-after")).toMatch(/^\d+$/);
    }
    expect(await payloads()).toEqual([]);
    await shut.close();
  },
);

test("the path knows POST alone", async () => {
  const answer = await fetch(inbox.url);
  expect([answer.status, answer.headers.get("allow")]).toEqual([405, "POST, OPTIONS"]);
});

describe("what is not for us is acknowledged and not kept:", () => {
  const others: readonly { readonly name: string; readonly make: () => object }[] = [
    { name: "an unknown type", make: () => eventOf("customer.created", { id: "cus_1" }) },
    { name: "an account's event", make: () => eventOf("account.updated", { id: "acct_1" }) },
    { name: "an object without an id", make: () => eventOf("balance.available", { object: "balance" }) },
    {
      name: "a charge object without a marker",
      make: () => eventOf("payment_intent.succeeded", { id: randomId("pi"), metadata: {} }),
    },
    {
      name: "a charge object with half a marker",
      make: () =>
        eventOf("payment_intent.succeeded", {
          id: randomId("pi"),
          metadata: { payment_attempt_id: randomId("att") },
        }),
    },
    {
      name: "the marker of a tenant that does not exist here",
      make: () =>
        chargeEvent({ tenantId: "ten_elsewhere", attemptId: randomId("att"), objectId: randomId("pi") }),
    },
    {
      name: "a refund of another's charge",
      make: () => eventOf("refund.updated", { id: randomId("re"), payment_intent: randomId("pi") }),
    },
    {
      name: "a dispute of another's charge",
      make: () => eventOf("charge.dispute.created", { id: randomId("dp"), payment_intent: randomId("pi") }),
    },
    {
      name: "an event of the other mode",
      make: () => chargeEvent(ours, "payment_intent.succeeded", { livemode: true }),
    },
  ];

  test.each(others)("$name", async ({ make }) => {
    const answer = await inbox.send(JSON.stringify(make()));
    expect([answer.status, await answer.json()]).toEqual([200, { received: true }]);
    expect(await payloads()).toEqual([]);
  });

  test("a thousand of them leave no row and are answered without a look at the provider", async () => {
    const before = await harness.sandbox.control.listRequests();
    for (let round = 0; round < 1_000 / others.length; round += 1) {
      const answers = await Promise.all(others.map(({ make }) => inbox.send(JSON.stringify(make()))));
      expect(answers.every((answer) => answer.status === 200)).toBe(true);
    }
    expect(await payloads()).toEqual([]);
    expect(await harness.sandbox.control.listRequests()).toEqual(before);
  });
});

describe("what may be ours is stored:", () => {
  test.each<{ readonly name: string; readonly make: () => object }>([
    {
      name: "an object of ours without a marker",
      make: () => eventOf("payment_intent.succeeded", { id: ours.objectId, metadata: {} }),
    },
    {
      name: "an object of ours with the marker of a tenant that does not exist",
      make: () => chargeEvent({ ...ours, tenantId: "ten_elsewhere" }),
    },
    {
      name: "a marker of an attempt that is not known yet",
      make: () => chargeEvent({ ...ours, attemptId: randomId("att"), objectId: randomId("pi") }),
    },
    {
      name: "a charge of an object of ours",
      make: () => eventOf("charge.refunded", { id: randomId("ch"), payment_intent: ours.objectId }),
    },
    {
      name: "a refund of a charge of ours",
      make: () => eventOf("refund.created", { id: randomId("re"), payment_intent: ours.objectId }),
    },
    {
      name: "a refund that names no charge object, in an old version's shape",
      make: () =>
        eventOf(
          "charge.refund.updated",
          { id: randomId("re"), charge: "ch_1" },
          { api_version: "2019-05-16" },
        ),
    },
    {
      name: "a dispute of a charge of ours",
      make: () => eventOf("charge.dispute.created", { id: randomId("dp"), payment_intent: ours.objectId }),
    },
    { name: "a payout", make: () => eventOf("payout.reconciliation_completed", { id: randomId("po") }) },
  ])("$name", async ({ make }) => {
    const body = JSON.stringify(make());
    expect((await inbox.send(body)).status).toBe(200);
    expect(await inboxOf(harness)).toMatchObject([{ payload: body, state: "pending", tries: 0 }]);
  });
});

/** A process of its own whose requests stand still at this point. */
async function inboxStoppedAt(point: string): Promise<{ gate: Gate; stopped: Inbox; deps: Deps }> {
  const gate = new Gate(point);
  const { deps } = await harness.another({ workers: [], env: OPEN_INBOX, probe: gate.probe });
  return { gate, stopped: await openInbox(deps), deps };
}

describe("an acknowledgement", () => {
  test("follows the commit of the row: nothing is promised before it, and a crash after it loses nothing", async () => {
    const { gate, stopped } = await inboxStoppedAt("after_event_stored");
    const body = marked();
    let answered = false;
    const sent = stopped.send(body).then((answer) => {
      answered = true;
      return answer.status;
    });
    await gate.reached();
    // Seen by another connection, so committed; and the sender knows nothing of it yet.
    expect(await payloads()).toEqual([body]);
    expect(answered).toBe(false);
    gate.open();
    expect(await sent).toBe(200);
    await stopped.close();
  });

  test("is not given before the row is written", async () => {
    const { gate, stopped } = await inboxStoppedAt("before_event_stored");
    const body = marked();
    const sent = stopped.send(body);
    await gate.reached();
    expect(await payloads()).toEqual([]);
    expect(await Promise.race([sent, Promise.resolve("no answer")])).toBe("no answer");
    gate.open();
    expect((await sent).status).toBe(200);
    expect(await payloads()).toEqual([body]);
    await stopped.close();
  });
});

describe("with the database away", () => {
  test("an event is answered 503 with Retry-After, and stored when it is sent again", async () => {
    const database = await createTestDatabase();
    const proxy = await TcpProxy.before(database.url);
    const away = await startHarness({
      workers: [],
      // Each statement is then sent with its text, by which the proxy knows it.
      env: { ...OPEN_INBOX, DATABASE_PREPARE: "false" },
      database: { ...database, url: proxy.through(database.url) },
    });
    const behind = await openInbox(away.deps);
    const seeded = await seedPayment(away);
    const body = JSON.stringify(chargeEvent(seeded));
    proxy.refuse(true);
    proxy.cut();
    const refused = await behind.send(body);
    expect(refused.status).toBe(503);
    expect(await refused.json()).toMatchObject({ code: "service_unavailable" });
    expect(refused.headers.get("retry-after")).toBe("1");
    proxy.refuse(false);
    expect((await behind.send(body)).status).toBe(200);
    expect(await inboxOf(away)).toHaveLength(1);

    // Committed, and the answer lost on its way: the sender is told to come again, and then finds it there.
    const second = JSON.stringify(chargeEvent(seeded));
    const held = proxy.holdAnswer("insert into provider_events");
    const lost = behind.send(second);
    await held.caught;
    proxy.cut();
    expect((await lost).status).toBe(503);
    expect((await behind.send(second)).status).toBe(200);
    expect((await inboxOf(away)).map((row) => row.payload).sort()).toEqual([body, second].sort());
    await behind.close();
    await away.stop();
    await proxy.stop();
  });
});
