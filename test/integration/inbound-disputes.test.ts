import { describe, expect, test } from "vitest";
import { listOf, paymentSchema, timelineEntrySchema } from "../../src/http/response-schemas.js";
import { listOpenReviews } from "../../src/operations/list-reviews.js";
import { type Connected, settled, useConnected } from "../support/connected.js";
import {
  AUTOMATIC,
  entriesOf,
  made,
  NEEDS_CUSTOMER,
  objectIdOf,
  outcomeOf,
  refund,
  typesOf,
  untilShows,
} from "../support/merchant.js";
import { useStage } from "../support/stage.js";
import { until } from "../support/until.js";

const stage = useStage();
const connected = useConnected(stage);

describe("a dispute", () => {
  test("stops refunds while it is open, and is won with its funds back", async () => {
    const wired = await connected({ copies: 2 });
    const { harness, client } = wired;
    const { bank } = harness.sandbox.control;
    const payment = await made(client, AUTOMATIC);
    const dispute = await bank.openDispute(objectIdOf(payment));
    const statusOf = async () => {
      const { disputes } = await client.payment(payment.id);
      return (disputes as { id: string; status: string }[]).map((one) => `${one.id} ${one.status}`);
    };
    await until("an open dispute", statusOf, (shown) => shown.join() === `${dispute.id} open`);
    expect(outcomeOf(await refund(client, payment.id, { amount: 1 }))).toBe("409 invalid_state");
    await harness.sandbox.control.dashboard.contestDispute(dispute.id);
    await until("a review", statusOf, (shown) => shown.join() === `${dispute.id} under_review`);
    await bank.closeDispute(dispute.id, "won");
    await until("a won dispute", statusOf, (shown) => shown.join() === `${dispute.id} won`);
    await settled(wired);
    const types = (await typesOf(client, payment.id)).filter((type) => type.startsWith("dispute."));
    expect([...types].sort()).toEqual([
      "dispute.funds_reinstated",
      "dispute.funds_withdrawn",
      "dispute.opened",
      "dispute.updated",
      "dispute.won",
    ]);
    const disputed = (await entriesOf(client, payment.id)).reduce(
      (sum, entry) =>
        sum +
        (entry.debit_account === "disputed" ? entry.amount : 0) -
        (entry.credit_account === "disputed" ? entry.amount : 0),
      0,
    );
    expect(disputed).toBe(0);
    const shown = (await client.get(`/v1/payments/${payment.id}`)).json;
    expect(paymentSchema.parse(shown).disputes).toMatchObject([
      { id: dispute.id, status: "won", amount: 10_000 },
    ]);
    const timeline = await client.get(`/v1/payments/${payment.id}/timeline?limit=100`);
    const kinds = listOf(timelineEntrySchema)
      .parse(timeline.json)
      .data.filter((entry) => entry.kind === "fact");
    expect(kinds).toHaveLength(5);
    expect(outcomeOf(await refund(client, payment.id, { amount: 1 }))).toBe("201");
  });

  test("that is lost, told in reverse order, is lost with its money, and refunds stay refused", async () => {
    const wired = await connected({ mode: "held" });
    const { harness, client, endpointId } = wired;
    const { control } = harness.sandbox;
    const payment = await made(client, AUTOMATIC);
    const dispute = await control.bank.openDispute(objectIdOf(payment));
    await control.bank.closeDispute(dispute.id, "lost");
    await control.releaseEvents(endpointId, "reverse");
    await settled(wired);
    expect(await client.payment(payment.id)).toMatchObject({
      disputes: [{ id: dispute.id, status: "lost" }],
    });
    const facts = (await entriesOf(client, payment.id)).map((entry) => entry.fact.split(":")[0]);
    expect(facts.filter((fact) => fact?.startsWith("dispute"))).toContain("dispute_lost");
    expect(outcomeOf(await refund(client, payment.id, { amount: 1 }))).toBe("409 invalid_state");
  });
});

describe("a payout", () => {
  test("posts what reached the bank, once", async () => {
    const wired = await connected({ copies: 2 });
    const { harness, client } = wired;
    const { control } = harness.sandbox;
    const payment = await made(client, AUTOMATIC);
    await control.advanceClock(14 * 86_400_000);
    await control.bank.payOut();
    const paidOut = async () =>
      (await entriesOf(client, payment.id)).filter((entry) => entry.fact.startsWith("paid_out:"));
    await until("a payout in the books", paidOut, (entries) => entries.length > 0);
    await settled(wired);
    expect(await paidOut()).toMatchObject([{ debit_account: "bank", credit_account: "provider_balance" }]);
  });
});

describe("an event with the right signature and wrong facts", () => {
  async function reviewsOf({ harness }: Connected, paymentId: string): Promise<string[]> {
    const open = await listOpenReviews(harness.deps, harness.caller.tenantId, 10);
    return open.filter((review) => review.paymentId === paymentId).map((review) => review.reason);
  }

  test.each([
    { name: "900 received of 10000", changes: { amount_received: 900 } },
    { name: "another amount", changes: { amount: 900, amount_received: 900 } },
    { name: "another currency", changes: { currency: "eur", amount_received: 10_000 } },
  ])("($name) is no success: a person looks", async ({ changes }) => {
    const wired = await connected();
    const { harness, client } = wired;
    const payment = await made(client, NEEDS_CUSTOMER);
    const told = { status: "succeeded", ...changes } as const;
    await harness.sandbox.control.patchPaymentIntent(objectIdOf(payment), told, "payment_intent.succeeded");
    await untilShows(client, payment.id, { status: "needs_review", amount_captured: 0 });
    expect(await reviewsOf(wired, payment.id)).toEqual(["provider_amount_mismatch"]);
    expect(await typesOf(client, payment.id)).not.toContain("payment.succeeded");
  });

  test("whose object names another payment is flagged on its own, and the other is untouched", async () => {
    const wired = await connected();
    const { harness, client } = wired;
    const [mine, other] = [await made(client, NEEDS_CUSTOMER), await made(client, AUTOMATIC)];
    const before = await client.payment(other.id);
    const { control } = harness.sandbox;
    const theirs = await control.getPaymentIntent(objectIdOf(other));
    const own = await control.getPaymentIntent(objectIdOf(mine));
    const { metadata } = theirs.payment_intent;
    await control.patchPaymentIntent(objectIdOf(mine), { metadata }, "payment_intent.processing");
    await until(
      "a review",
      () => reviewsOf(wired, mine.id),
      (reasons) => reasons.length === 1,
    );
    await settled(wired);
    expect(await reviewsOf(wired, mine.id)).toEqual(["provider_object_foreign"]);
    expect(await reviewsOf(wired, other.id)).toEqual([]);
    expect(await client.payment(other.id)).toEqual(before);
    // Set right at the provider, the object is believed again, and the fact ends the review.
    await control.patchPaymentIntent(objectIdOf(mine), { metadata: own.payment_intent.metadata });
    await control.authenticate(objectIdOf(mine), "complete");
    await untilShows(client, mine.id, { status: "succeeded" });
    expect(await reviewsOf(wired, mine.id)).toEqual([]);
  });
});
