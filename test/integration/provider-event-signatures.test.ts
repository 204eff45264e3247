import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Harness, startHarness } from "../support/harness.js";
import {
  emptyInbox,
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

describe("a body that is signed and is no event", () => {
  test.each([
    ["no JSON", "{"],
    ["an id alone", '{"id":"evt_1"}'],
    ["no object", '{"id":"evt_1","type":"payment_intent.succeeded","livemode":false,"data":{}}'],
    ["no UTF-8", Buffer.from([0x7b, 0xff, 0x7d])],
    ["nothing", ""],
  ])("is not said to be unsigned: %s", async (_what, body) => {
    const refused = await inbox.send(body);
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({ code: "malformed_request" });
    const unsigned = await inbox.send(body, { "Stripe-Signature": signatureOf(`${String(body)} `) });
    expect(await unsigned.json()).toMatchObject({ code: "webhook_signature_invalid" });
    expect(await payloads()).toEqual([]);
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
