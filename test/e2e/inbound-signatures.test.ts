import { afterAll, beforeAll, expect, it } from "vitest";
import type { ApiClient, PaymentDocument } from "../support/api-client.js";
import { describeWithFaults } from "../support/e2e-target.js";
import { made, NEEDS_CUSTOMER, objectIdOf, untilShows } from "../support/merchant.js";
import {
  deliver,
  digestOf,
  EVENTFUL,
  type SendOptions,
  STRIPE_SECRET,
  nowSeconds as seconds,
  signed,
} from "../support/stripe-sender.js";
import { type Api, type System, startFaultySystem } from "../support/system.js";

const OLD_SECRET = "whsec_until_yesterday";
const KIB = 1_024;
/** A second that passes between signing and reading must not decide a test. */
const MARGIN = 5;

const body = (event: object) => JSON.stringify(event);

describeWithFaults("the signature of the provider's events", () => {
  let system: System;
  let api: Api;
  let client: ApiClient;

  beforeAll(async () => {
    // A payment that waits for its customer is asked about when an event says so, and not before.
    const env = {
      ...EVENTFUL,
      STRIPE_WEBHOOK_SECRET: `${STRIPE_SECRET}, ${OLD_SECRET}`,
      FOLLOW_FIRST_MS: "600000",
      FOLLOW_MOST_MS: "600000",
    };
    system = await startFaultySystem({ env });
    api = await system.api();
    client = api.client;
    await system.worker();
  });
  afterAll(() => system.drop());

  /** A payment whose customer has paid, which an event alone can tell; and that event. */
  async function told(): Promise<{ payment: PaymentDocument; event: Record<string, unknown> }> {
    const payment = await made(client, NEEDS_CUSTOMER);
    await system.control.authenticate(objectIdOf(payment), "complete");
    const [event] = await system.control.listEvents({
      type: "payment_intent.succeeded",
      object_id: objectIdOf(payment),
    });
    return { payment, event: { ...event } };
  }

  async function looksAt({ provider_payment_id: id }: PaymentDocument): Promise<number> {
    const call = "payment_intents.retrieve";
    return (await system.control.listRequests({ call, object_id: id ?? "" })).length;
  }

  const reversed = (event: Record<string, unknown>) => Object.fromEntries(Object.entries(event).reverse());
  const SPELLINGS: Readonly<Record<string, (event: Record<string, unknown>) => string>> = {
    "with odd white space": (event) => `\r\n\t ${JSON.stringify(event, null, "\t")}  `,
    "with escapes": (event) => body(event).replaceAll("succeeded", "\\u0073ucceeded").replaceAll("/", "\\/"),
    "with emoji and text of the right-to-left kind": (event) => body({ ...event, note: "😀 שלום \u202e é" }),
    "with a line break at its end": (event) => `${body(event)}\n`,
    "with its members in another order": (event) => body(reversed(event)),
    "of 200 KB": (event) => body({ ...event, padding: "x".repeat(200 * KIB) }),
    "of 1 MiB less a little": (event) => body({ ...event, padding: "ä".repeat(500 * KIB) }),
  };

  it.each(Object.entries(SPELLINGS))(
    "%s: over the very bytes, and one of them changed is 400",
    async (_name, spell) => {
      const { payment, event } = await told();
      const text = spell(event);
      const bytes = Buffer.from(text);
      const looks = await looksAt(payment);
      for (const at of [0, Math.floor(bytes.length / 2), bytes.length - 1]) {
        const changed = Buffer.from(bytes);
        changed[at] = (changed[at] ?? 0) ^ 1;
        expect((await deliver(api.url, changed, { signature: signed(bytes) })).status).toBe(400);
      }
      // The same event, written as a parser and a serializer would write it again, or with its ends cut.
      const retold = [`${text} `, text.trim(), text.slice(0, -1), body(JSON.parse(text) as object)];
      for (const other of retold.filter((one) => one !== text)) {
        expect((await deliver(api.url, other, { signature: signed(bytes) })).status).toBe(400);
      }
      expect([(await client.payment(payment.id)).status, await looksAt(payment)]).toEqual([
        "requires_action",
        looks,
      ]);
      expect((await deliver(api.url, bytes)).status).toBe(200);
      await untilShows(client, payment.id, { status: "succeeded" });
    },
  );

  it.each([
    ["with a charset", "application/json; charset=utf-8"],
    ["of another type", "text/plain"],
    ["absent", null],
  ] as const)("with its content type %s", async (_name, contentType) => {
    const { payment, event } = await told();
    expect((await deliver(api.url, body(event), { contentType })).status).toBe(200);
    await untilShows(client, payment.id, { status: "succeeded" });
  });

  const good = (text: string, at: number = seconds()) => `v1=${digestOf(text, at)}`;
  const bad = "v1=".padEnd(67, "0");
  const ACCEPTED: Readonly<Record<string, (text: string) => NonNullable<SendOptions["signature"]>>> = {
    "a bad v1, then a good one": (text) => `t=${seconds()},${bad},${good(text)}`,
    "a good v1, then a bad one": (text) => `t=${seconds()},${good(text)},${bad}`,
    "a v0 beside it": (text) => `t=${seconds()},${good(text)},v0=${"0".repeat(64)}`,
    "an empty v1 before it": (text) => `t=${seconds()},v1=,${good(text)}`,
    "the secret before this one": (text) => `t=${seconds()},v1=${digestOf(text, seconds(), OLD_SECRET)}`,
    "both secrets": (text) => `t=${seconds()},v1=${digestOf(text, seconds(), OLD_SECRET)},${good(text)}`,
    "a time of almost 300 s ago": (text) => signed(text, seconds() - 300 + MARGIN),
    "a time almost 300 s ahead": (text) => signed(text, seconds() + 300 - MARGIN),
  };

  it.each(Object.entries(ACCEPTED))("is accepted with %s", async (_name, sign) => {
    const { payment, event } = await told();
    const text = body(event);
    expect((await deliver(api.url, text, { signature: sign(text) })).status).toBe(200);
    await untilShows(client, payment.id, { status: "succeeded" });
    // Stripe signs each delivery anew: the same event, another time.
    expect((await deliver(api.url, text, { signature: signed(text, seconds() - 30) })).status).toBe(200);
  });

  const REFUSED: Readonly<Record<string, (text: string) => SendOptions["signature"] | undefined>> = {
    "no header": () => null,
    "an empty header": () => "",
    "a time older than 300 s": (text) => signed(text, seconds() - 300 - MARGIN),
    "a time more than 300 s ahead": (text) => signed(text, seconds() + 300 + MARGIN),
    "an empty v1": () => `t=${seconds()},v1=`,
    "no v1": () => `t=${seconds()}`,
    "v1 alone": (text) => good(text),
    "a v0 alone": (text) => `t=${seconds()},${good(text).replace("v1", "v0")}`,
    "a short v1": (text) => `t=${seconds()},${good(text).slice(0, -1)}`,
    "half a v1": (text) => `t=${seconds()},${good(text).slice(0, 35)}`,
    "a long v1": (text) => `t=${seconds()},${good(text)}00`,
    "a v1 that is not hex": (text) => `t=${seconds()},${good(text).slice(0, -1)}g`,
    "t=abc": (text) => `t=abc,v1=${digestOf(text, "abc")}`,
    "an empty t": (text) => `t=,v1=${digestOf(text, "")}`,
    "a negative t": (text) => signed(text, -seconds()),
    "a t with a fraction": (text) => signed(text, `${seconds()}.5`),
    "a t of hundred digits": (text) => signed(text, "9".repeat(100)),
    "two header lines": (text) => [signed(text), signed(text)],
    "two t": (text) => `t=${seconds()},t=${seconds()},${good(text)}`,
    "another time than the signed one": (text) => `t=${seconds() - 1},${good(text)}`,
    "another secret": (text) => `t=${seconds()},v1=${digestOf(text, seconds(), "whsec_other")}`,
    "an empty secret": (text) => `t=${seconds()},v1=${digestOf(text, seconds(), "")}`,
    "a header of 8 KB": (text) => `t=${seconds()},${`${bad},`.repeat(100)}v2=${digestOf(text, 1)}`,
  };

  it("is refused with 400 in every other form, with one text, and nothing is looked at", async () => {
    const { payment, event } = await told();
    const text = body(event);
    const looks = await looksAt(payment);
    const details = new Set<string>();
    for (const [name, sign] of Object.entries(REFUSED)) {
      const answer = await deliver(api.url, text, { signature: sign(text) ?? null });
      expect([name, answer.status]).toEqual([name, 400]);
      details.add((JSON.parse(answer.text) as { detail: string }).detail);
      expect(answer.text).not.toContain(STRIPE_SECRET);
    }
    // Whoever guesses learns nothing from how he failed.
    expect(details.size).toBe(1);
    expect([(await client.payment(payment.id)).status, await looksAt(payment)]).toEqual([
      "requires_action",
      looks,
    ]);
  });

  it("that is right over what is no event is 400, never 500, and the process goes on", async () => {
    const notUtf8 = Buffer.concat([
      Buffer.from('{"id":"evt_1","type":"'),
      Buffer.from([0xff, 0xfe]),
      Buffer.from('"}'),
    ]);
    for (const text of [
      "",
      "{",
      "null",
      "[]",
      "1",
      '"x"',
      "{}",
      '{"id":1}',
      `{"id":"evt_1","object":"event"}`,
      notUtf8,
    ]) {
      const answer = await deliver(api.url, text);
      expect([String(text), answer.status]).toEqual([String(text), 400]);
      expect(JSON.parse(answer.text)).toMatchObject({ code: "malformed_request" });
    }
    const deep = `{"id":"evt_1","data":${"[".repeat(100_000)}${"]".repeat(100_000)}}`;
    expect((await deliver(api.url, deep)).status).toBe(400);
    const { payment, event } = await told();
    expect((await deliver(api.url, body(event))).status).toBe(200);
    await untilShows(client, payment.id, { status: "succeeded" });
  });

  it("over more than 1 MiB is 413", async () => {
    const { event } = await told();
    const large = body({ ...event, padding: "x".repeat(KIB * KIB) });
    expect((await deliver(api.url, large)).status).toBe(413);
  });

  it("needs no bearer and no key, and without a secret there is no endpoint: 503", async () => {
    for (const blank of ["", "  ", " , "]) {
      const closed = await system.api({ STRIPE_WEBHOOK_SECRET: blank });
      const text = body({ id: "evt_1" });
      for (const secret of ["", " ", STRIPE_SECRET]) {
        const signature = `t=${seconds()},v1=${digestOf(text, seconds(), secret)}`;
        expect((await deliver(closed.url, text, { signature })).status).toBe(503);
      }
      await closed.process.stop();
    }
  });
});
