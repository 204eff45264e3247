import type Stripe from "stripe";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../src/sandbox/index.js";
import { stripeFor, thrown } from "./support.js";

let sandbox: Sandbox;
let stripe: Stripe;

beforeAll(async () => {
  sandbox = await startSandbox({ searchLagMs: 60_000 });
  stripe = stripeFor(sandbox);
});
afterAll(() => sandbox.stop());

const CARD: Stripe.PaymentIntentCreateParams = {
  amount: 4200,
  currency: "USD",
  payment_method: "pm_card_visa",
  allowed_payment_method_types: ["card"],
};

describe("the list", () => {
  it("is complete at once, newest first, in pages that lose and repeat nothing", async () => {
    const key = "sk_test_lists";
    const own = stripeFor(sandbox, key);
    const ids: string[] = [];
    for (let at = 0; at < 7; at += 1) {
      ids.unshift(
        (await own.paymentIntents.create({ ...CARD, customer: at === 3 ? "cus_three" : "cus_other" })).id,
      );
    }
    const first = await own.paymentIntents.list({ limit: 3 });
    expect(first).toMatchObject({ object: "list", has_more: true, url: "/v1/payment_intents" });
    expect(first.data.map((each) => each.id)).toEqual(ids.slice(0, 3));
    const second = await own.paymentIntents.list({ limit: 3, starting_after: ids[2]! });
    expect(second.data.map((each) => each.id)).toEqual(ids.slice(3, 6));
    const back = await own.paymentIntents.list({ limit: 2, ending_before: ids[5]! });
    expect(back.data.map((each) => each.id)).toEqual(ids.slice(3, 5));
    expect(back.has_more).toBe(true);
    const all: string[] = [];
    for await (const each of own.paymentIntents.list({ limit: 2 })) all.push(each.id);
    expect(all).toEqual(ids);
    expect((await own.paymentIntents.list({ customer: "cus_three" })).data.map((each) => each.id)).toEqual([
      ids[3],
    ]);
  });

  it("filters by created with both ends, also after the clock was set back", async () => {
    const own = stripeFor(sandbox, "sk_test_windows");
    const at = (seconds: number) => sandbox.control.setClock(new Date(seconds * 1000));
    const made: Stripe.PaymentIntent[] = [];
    for (const seconds of [2_000_000_100, 2_000_000_300, 2_000_000_200]) {
      await at(seconds);
      made.push(await own.paymentIntents.create(CARD));
    }
    const idsOf = async (created: Stripe.RangeQueryParam) =>
      (await own.paymentIntents.list({ created })).data.map((each) => each.id);
    const [first, third, second] = made as [Stripe.PaymentIntent, Stripe.PaymentIntent, Stripe.PaymentIntent];
    expect(await idsOf({ gte: 0 })).toEqual([third.id, second.id, first.id]);
    expect(await idsOf({ gte: second.created })).toEqual([third.id, second.id]);
    expect(await idsOf({ gt: second.created })).toEqual([third.id]);
    expect(await idsOf({ lt: second.created })).toEqual([first.id]);
    expect(await idsOf({ gte: first.created + 1, lte: third.created - 1 })).toEqual([second.id]);
    await sandbox.control.setClock(new Date());
  });
});

describe("search", () => {
  it("shows an object only after the lag, and then finds it by metadata", async () => {
    const made = await stripe.paymentIntents.create({ ...CARD, metadata: { attempt: 'a"1' } });
    const query = String.raw`metadata["attempt"]:"a\"1"`;
    expect((await stripe.paymentIntents.search({ query })).data).toEqual([]);
    await sandbox.control.advanceClock(61_000);
    const found = await stripe.paymentIntents.search({ query });
    expect(found.data.map((each) => each.id)).toEqual([made.id]);
    const both = await stripe.paymentIntents.search({ query: `${query} AND status:"canceled"` });
    expect(both.data).toEqual([]);
    const either = await stripe.paymentIntents.search({ query: `${query} OR status:"canceled"` });
    expect(either.data.map((each) => each.id)).toContain(made.id);
    expect(await thrown(stripe.paymentIntents.search({ query: "metadata" }))).toMatchObject({
      statusCode: 400,
    });
  });
});
