import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Deps } from "../../src/operations/deps.js";
import { Gate } from "../support/gate.js";
import { type Harness, startHarness } from "../support/harness.js";
import {
  chargeEvent,
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
afterEach(() => harness.deps.db.sql`delete from provider_events`);
afterAll(async () => {
  await inbox.close();
  await harness.stop();
});

async function payloads(): Promise<string[]> {
  return (await inboxOf(harness)).map((row) => row.payload);
}

function marked(extra: string): string {
  const metadata = `"metadata":{"payment_attempt_id":"${ours.attemptId}","tenant_id":"${ours.tenantId}"${extra}}`;
  return `{"id":"${randomId("evt")}","type":"payment_intent.succeeded","livemode":false,"data":{"object":{"id":"${ours.objectId}",${metadata}}}}`;
}

const BODIES: readonly { readonly name: string; readonly make: () => string }[] = [
  { name: "odd white space and a trailing newline", make: () => ` \n\t${marked(' ,\r\n "a" :  "b"')}\r\n\n` },
  { name: "escapes", make: () => marked(',"\\u0061\\/":"\\ud83d\\ude00\\u0000\\b"') },
  { name: "emoji and other scripts", make: () => marked(',"😀 שלום":"e\u0301 \u202e — \uffff"') },
  { name: "unsorted and repeated members", make: () => marked(',"z":"1","10":"2","9":"3","z":"4"') },
  { name: "200 KB", make: () => marked(`,"long":"${"x€".repeat(50_000)}"`) },
];

describe("an event's signature covers its bytes", () => {
  test.each(BODIES)("of $name, which are stored as they came", async ({ make }) => {
    const body = make();
    expect((await inbox.send(body)).status).toBe(200);
    expect(await payloads()).toEqual([body]);
  });

  test.each(BODIES)("of $name, and one changed byte is refused and leaves nothing", async ({ make }) => {
    const body = make();
    const changed = Buffer.from(body);
    const at = changed.lastIndexOf("}");
    changed.writeUInt8(" ".charCodeAt(0), at);
    const refused = await inbox.send(changed, { "Stripe-Signature": signatureOf(body) });
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({ code: "webhook_signature_invalid" });
    expect(await payloads()).toEqual([]);
  });

  test.each([
    ["application/json; charset=utf-8", 200],
    ["text/plain", 200],
    ["application/x-www-form-urlencoded", 200],
  ])("whatever the content type says: %s", async (type, status) => {
    const body = marked("");
    const headers = { "Content-Type": type, "Stripe-Signature": signatureOf(body) };
    expect((await inbox.send(body, headers)).status).toBe(status);
  });

  test("without a content type, without a key of ours, and with one that is nonsense", async () => {
    const bytes = Buffer.from(marked(""));
    const signature = { "Stripe-Signature": signatureOf(bytes) };
    expect((await inbox.send(bytes, signature)).status).toBe(200);
    const other = Buffer.from(marked(""));
    const nonsense = { "Stripe-Signature": signatureOf(other), Authorization: "Bearer nobody" };
    expect((await inbox.send(other, nonsense)).status).toBe(200);
    expect(await payloads()).toHaveLength(2);
  });

  test("up to 1 MiB, and not above", async () => {
    const padded = (size: number) => {
      const body = marked("");
      return body + " ".repeat(size - Buffer.byteLength(body));
    };
    expect((await inbox.send(padded(1024 * 1024))).status).toBe(200);
    expect((await inbox.send(padded(1024 * 1024 + 1))).status).toBe(413);
    expect(await payloads()).toHaveLength(1);
  });
});

const HOUR = 3_600;
const now = () => Math.floor(Date.now() / 1_000);
const hexOf = (header: string) => header.split("v1=")[1] ?? "";

const HEADERS: readonly {
  readonly name: string;
  readonly status: number;
  readonly make: (body: string) => string | null;
}[] = [
  {
    name: "a wrong v1 and then the right one",
    status: 200,
    make: (b) => signatureOf(b).replace("v1=", `v1=${"0".repeat(64)},v1=`),
  },
  {
    name: "the right v1 and then a wrong one",
    status: 200,
    make: (b) => `${signatureOf(b)},v1=${"0".repeat(64)}`,
  },
  { name: "a v0 beside it", status: 200, make: (b) => `${signatureOf(b)},v0=${"1".repeat(64)}` },
  { name: "a time 290 s ago", status: 200, make: (b) => signatureOf(b, WEBHOOK_SECRET, now() - 290) },
  { name: "a time 290 s ahead", status: 200, make: (b) => signatureOf(b, WEBHOOK_SECRET, now() + 290) },
  { name: "a time 310 s ago", status: 400, make: (b) => signatureOf(b, WEBHOOK_SECRET, now() - 310) },
  { name: "a time 310 s ahead", status: 400, make: (b) => signatureOf(b, WEBHOOK_SECRET, now() + 310) },
  { name: "a time hours ahead", status: 400, make: (b) => signatureOf(b, WEBHOOK_SECRET, now() + 9 * HOUR) },
  { name: "another secret", status: 400, make: (b) => signatureOf(b, "whsec_other") },
  { name: "no header", status: 400, make: () => null },
  { name: "an empty header", status: 400, make: () => "" },
  { name: "an empty v1", status: 400, make: () => `t=${now()},v1=` },
  { name: "a short v1", status: 400, make: (b) => signatureOf(b).slice(0, -2) },
  { name: "a v1 that is no hex", status: 400, make: () => `t=${now()},v1=${"g".repeat(64)}` },
  { name: "t=abc", status: 400, make: (b) => `t=abc,v1=${hexOf(signatureOf(b))}` },
  { name: "two times", status: 400, make: (b) => `t=${now()},${signatureOf(b)}` },
  { name: "no time", status: 400, make: (b) => `v1=${hexOf(signatureOf(b))}` },
  { name: "only a v0", status: 400, make: (b) => `t=${now()},v0=${hexOf(signatureOf(b))}` },
];

describe("a signature header", () => {
  test.each(HEADERS)("with $name is answered $status", async ({ status, make }) => {
    const body = marked("");
    const header = make(body);
    const answer = await inbox.send(body, header === null ? {} : { "Stripe-Signature": header });
    expect(answer.status).toBe(status);
    expect(await payloads()).toEqual(status === 200 ? [body] : []);
  });

  test("signed anew for the same event is a redelivery: acknowledged, and stored once", async () => {
    const body = marked("");
    for (const secondsAgo of [20, 10, 0]) {
      const signature = signatureOf(body, WEBHOOK_SECRET, now() - secondsAgo);
      expect((await inbox.send(body, { "Stripe-Signature": signature })).status).toBe(200);
    }
    expect(await payloads()).toEqual([body]);
  });

  test("counts by either secret while one is being rotated", async () => {
    const rolling = await harness.another({
      workers: [],
      env: { ...OPEN_INBOX, STRIPE_WEBHOOK_SECRET: "whsec_new, whsec_old" },
    });
    const both = await openInbox(rolling.deps);
    for (const [secret, status] of [
      ["whsec_new", 200],
      ["whsec_old", 200],
      [WEBHOOK_SECRET, 400],
    ] as const) {
      const body = marked("");
      expect((await both.send(body, { "Stripe-Signature": signatureOf(body, secret) })).status).toBe(status);
    }
    await both.close();
  });
});

test.each(["", "  ", " , "])(
  "with the secret %j the endpoint is closed, to good signatures too",
  async (blank) => {
    const closed = await harness.another({ workers: [], env: { STRIPE_WEBHOOK_SECRET: blank } });
    const shut = await openInbox(closed.deps);
    const body = marked("");
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
    const body = marked("");
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
    const body = marked("");
    const sent = stopped.send(body);
    await gate.reached();
    expect(await payloads()).toEqual([]);
    expect(await Promise.race([sent, "no answer"])).toBe("no answer");
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
