import { describe, expect, it } from "vitest";
import { newKey, type PaymentDocument } from "../support/api-client.js";
import { describeWithFaults } from "../support/e2e-target.js";
import { TOLD_ONLY, useInbox } from "../support/inbox.js";
import {
  AUTOMATIC,
  entriesOf,
  made,
  NEEDS_CUSTOMER,
  objectIdOf,
  typesOf,
  untilShows,
} from "../support/merchant.js";
import { usePair } from "../support/pair.js";
import { deliver } from "../support/stripe-sender.js";
import { type Api, untilStatus } from "../support/system.js";

const FOREIGN = 1_000;
const AT_ONCE = 20;

describeWithFaults("what the provider's events say, at two processes", () => {
  const pair = usePair(TOLD_ONLY);
  const inbox = useInbox(pair);

  /** Why a person must look at this payment. */
  const reviewsOf = async ({ id }: PaymentDocument) => {
    const command = ["reviews", "list", "--tenant", pair.system.tenantId];
    const { data } = await pair.system.command<{ data: { payment_id: string; reason: string }[] }>(
      ...command,
    );
    return data.filter((review) => review.payment_id === id).map((review) => review.reason);
  };
  /** A paid object that Pawl did not make, with this marker. */
  async function chargedBesides(metadata: Readonly<Record<string, string>>): Promise<string> {
    const { STRIPE_API_BASE: base, STRIPE_SECRET_KEY: secret } = pair.system.settings();
    const form = new URLSearchParams({ amount: "10000", currency: "usd", payment_method: "pm_card_visa" });
    form.set("confirm", "true");
    form.set("allowed_payment_method_types[0]", "card");
    for (const [name, value] of Object.entries(metadata)) form.set(`metadata[${name}]`, value);
    const headers = { Authorization: `Bearer ${secret ?? ""}` };
    const answer = await fetch(`${base ?? ""}/v1/payment_intents`, { method: "POST", headers, body: form });
    const object = (await answer.json()) as { id?: string; status?: string };
    if (object.status !== "succeeded") throw new Error(`not paid: ${JSON.stringify(object)}`);
    return object.id ?? "";
  }

  it(`that are not for us, ${FOREIGN} of them: 2xx, no call, nothing kept`, async () => {
    await inbox.untilNothingWaits();
    const [before, calls] = [await inbox.kept(), (await pair.control.listRequests()).length];
    const foreign = (at: number): string => {
      const id = `evt_${newKey()}`;
      const event = (type: string, object: object) =>
        JSON.stringify({ id, object: "event", type, created: 1, livemode: false, data: { object } });
      const other = `pi_${newKey()}`;
      const kinds = [
        event("a.type_of_tomorrow", { id: "x", object: "thing" }),
        event("payment_intent.succeeded", { id: other, object: "payment_intent", metadata: {} }),
        event("payment_intent.succeeded", {
          id: other,
          object: "payment_intent",
          metadata: { payment_attempt_id: "att_0", tenant_id: "ten_other" },
        }),
        event("charge.refunded", { id: "ch_x", object: "charge", payment_intent: other }),
        event("charge.succeeded", { id: "ch_x", object: "charge", payment_intent: null }),
        event("refund.created", { id: "re_x", object: "refund", payment_intent: other }),
        event("charge.dispute.created", { id: "dp_x", object: "dispute", payment_intent: other }),
        event("account.updated", { id: "acct_1", object: "account" }),
        event("balance.available", { object: "balance" }),
        event("customer.created", { id: "cus_1", object: "customer" }),
      ];
      return kinds[at % kinds.length] ?? "";
    };
    for (let sent = 0; sent < FOREIGN; sent += AT_ONCE) {
      const answers = await Promise.all(
        Array.from({ length: AT_ONCE }, (_, at) =>
          deliver((pair.apis[at % 2] as Api).url, foreign(sent + at)),
        ),
      );
      for (const answer of answers) expect(answer.status).toBe(200);
    }
    expect([await inbox.kept(), await inbox.waiting()]).toEqual([before, 0]);
    expect((await pair.control.listRequests()).length).toBe(calls);
  });

  it("of the other mode never touch a payment", async () => {
    const payment = await inbox.untold();
    const told = await inbox.eventOf(payment);
    expect((await deliver(pair.apis[0].url, told.with({ livemode: true }, { livemode: true }))).status).toBe(
      200,
    );
    await inbox.untilNothingWaits();
    expect((await pair.client.payment(payment.id)).status).toBe("requires_action");
    // The same event id with the right mode is news still.
    expect((await deliver(pair.apis[0].url, told.with({}))).status).toBe(200);
    await untilShows(pair.client, payment.id, { status: "succeeded" });
  });

  it.each([
    [
      "an older version with a list of charges",
      "2020-08-27",
      (object: object) => ({
        ...object,
        charges: { object: "list", data: [{ id: "ch_1", paid: true }] },
        latest_charge: undefined,
      }),
    ],
    ["the id of the latest charge alone", "2022-11-15", (object: object) => object],
    [
      "a newer version with fields nobody knows",
      "2031-01-01.future",
      (object: object) => ({
        ...object,
        amount_moved: { usd: 1 },
        latest_charge: { id: "ch_1", object: "charge" },
      }),
    ],
    ["no version", null, (object: object) => ({ ...object, amount_received: undefined })],
  ] as const)("in the shape of %s: applied alike", async (_name, version, shape) => {
    const payment = await inbox.untold();
    const told = await inbox.eventOf(payment);
    const object = shape((told.event["data"] as { object: object }).object);
    const text = told.with({ api_version: version, context: "x", unknown: [1, { a: null }] }, object);
    expect((await deliver(pair.apis[0].url, text)).status).toBe(200);
    await untilShows(pair.client, payment.id, { status: "succeeded", amount_captured: 10_000 });
    await pair.expectOneTruth(payment.id);
  });

  describe("with the right signature and wrong facts", () => {
    it("told alone (less received, another currency, another status): the provider's object decides", async () => {
      const payment = await made(pair.client, NEEDS_CUSTOMER);
      const wrong = JSON.stringify({
        id: `evt_${newKey()}`,
        object: "event",
        type: "payment_intent.succeeded",
        created: 1,
        livemode: false,
        data: {
          object: {
            ...(await pair.control.getPaymentIntent(objectIdOf(payment))).payment_intent,
            status: "succeeded",
            amount_received: 9_000,
            currency: "eur",
          },
        },
      });
      expect((await deliver(pair.apis[0].url, wrong)).status).toBe(200);
      await inbox.untilNothingWaits();
      await pair.control.waitForRequests({
        filter: { call: "payment_intents.retrieve", object_id: objectIdOf(payment) },
        until: "settled",
      });
      expect(await pair.client.payment(payment.id)).toMatchObject({
        status: "requires_action",
        amount_captured: 0,
      });
      await pair.expectOneTruth(payment.id);
    });

    it.each([
      ["less received than was asked for", { amount_received: 900 }],
      ["another currency", { currency: "eur" }],
      ["another amount", { amount: 900, amount_received: 900 }],
    ] as const)("true at the provider (%s): flagged, and not shown as paid", async (_name, changes) => {
      const payment = await inbox.untold();
      await pair.control.patchPaymentIntent(objectIdOf(payment), changes);
      expect((await deliver(pair.apis[0].url, (await inbox.eventOf(payment)).with({}, changes))).status).toBe(
        200,
      );
      const flagged = await untilStatus(pair.client, payment.id, ["needs_review"]);
      expect([flagged.amount_captured, flagged.resolution?.reason]).toEqual([0, "provider_amount_mismatch"]);
      expect(await entriesOf(pair.client, payment.id)).toEqual([]);
      expect(await typesOf(pair.client, payment.id)).not.toContain("payment.succeeded");
    });

    it("a known object whose metadata names another payment, and another tenant's: flagged, theirs untouched", async () => {
      const foreign = await pair.stranger();
      for (const other of [await made(pair.client, NEEDS_CUSTOMER), await made(foreign, NEEDS_CUSTOMER)]) {
        const payment = await inbox.untold();
        const { payment_intent: theirs } = await pair.control.getPaymentIntent(objectIdOf(other));
        const metadata = theirs.metadata;
        await pair.control.patchPaymentIntent(objectIdOf(payment), { metadata });
        expect(
          (await deliver(pair.apis[0].url, (await inbox.eventOf(payment)).with({}, { metadata }))).status,
        ).toBe(200);
        await inbox.untilNothingWaits();
        expect(await reviewsOf(payment)).toEqual(["provider_object_foreign"]);
        expect((await pair.client.payment(payment.id)).amount_captured).toBe(0);
        for (const api of [pair.client, foreign]) {
          const read = await api.get(`/v1/payments/${other.id}`);
          if (read.status === 200) expect(read.json).toEqual(other);
        }
      }
    });

    it("a second object with our marker on which money moved: flagged, never adopted", async () => {
      const payment = await made(pair.client, AUTOMATIC);
      const [attempt] = (await pair.client.timeline(payment.id)).map((entry) => entry.attempt_id);
      const stray = await chargedBesides({
        payment_attempt_id: attempt ?? "",
        tenant_id: pair.system.tenantId,
      });
      const [told] = await pair.control.listEvents({ type: "payment_intent.succeeded", object_id: stray });
      expect((await deliver(pair.apis[0].url, JSON.stringify(told))).status).toBe(200);
      await inbox.untilNothingWaits();
      expect(await reviewsOf(payment)).toEqual(["provider_object_stray"]);
      expect(await pair.client.payment(payment.id)).toMatchObject({ amount_captured: 10_000 });
      expect(
        (await entriesOf(pair.client, payment.id)).filter((entry) => entry.fact === "captured"),
      ).toHaveLength(1);
    });
  });
});
