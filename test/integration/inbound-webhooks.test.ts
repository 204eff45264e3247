import { describe, expect, test } from "vitest";
import type { ApiClient } from "../support/api-client.js";
import { type Connected, settled, useConnected } from "../support/connected.js";
import {
  AUTOMATIC,
  entriesOf,
  made,
  NEEDS_CUSTOMER,
  objectIdOf,
  outcomeOf,
  type RefundDocument,
  refund,
  refundsOf,
  typesOf,
  untilRefund,
  untilShows,
} from "../support/merchant.js";
import { inboxOf } from "../support/provider-events.js";
import { useStage } from "../support/stage.js";
import { until } from "../support/until.js";

const stage = useStage();
const connected = useConnected(stage);

describe("the customer's step", () => {
  test("ends the payment by its event alone", async () => {
    const { harness, client } = await connected();
    const payment = await made(client, NEEDS_CUSTOMER);
    expect(payment.status).toBe("requires_action");
    await harness.sandbox.control.authenticate(objectIdOf(payment), "complete");
    await untilShows(client, payment.id, { status: "succeeded", amount_captured: 10_000 });
  });
});

describe("events of one payment", () => {
  test("in reverse order and three times each never take its state back", async () => {
    const wired = await connected({ mode: "held", copies: 3 });
    const { harness, client, endpointId } = wired;
    const payment = await made(client, AUTOMATIC);
    const before = await client.payment(payment.id);
    const deliveries = await harness.sandbox.control.releaseEvents(endpointId, "reverse");
    expect(deliveries.length).toBeGreaterThanOrEqual(6);
    expect(deliveries.every((one) => one.status === 200)).toBe(true);
    await settled(wired);
    expect(await client.payment(payment.id)).toEqual(before);
    expect(await typesOf(client, payment.id)).toEqual(["payment.created", "payment.succeeded"]);
  });

  test("that come before our call is answered are kept, and the call's answer is the first word", async () => {
    const wired = await connected();
    const { harness, client } = wired;
    const { control } = harness.sandbox;
    await control.addFault({
      match: { call: "payment_intents.confirm" },
      fault: { type: "hang", effect: "applied" },
    });
    const answer = client.pay(AUTOMATIC, { prefer: "wait=30" });
    await control.waitForHeld();
    await control.webhooksIdle();
    const confirmed = (rows: { state: string; payload: string }[]) =>
      rows.some((row) => row.state === "applied" && row.payload.includes('"payment_intent.succeeded"'));
    await until("the event applied while the call is out", () => inboxOf(harness), confirmed);
    await control.release();
    const { status, json } = await answer;
    expect([status, json.status]).toEqual([201, "succeeded"]);
    await settled(wired);
    expect(await typesOf(client, json.id ?? "")).toEqual(["payment.created", "payment.succeeded"]);
  });
});

/** The one refund of the payment that we did not make. */
async function externalRefund(client: ApiClient, paymentId: string): Promise<RefundDocument> {
  const [found] = await until(
    "an external refund",
    () => refundsOf(client, paymentId),
    (refunds) => refunds.some((one) => one.external),
  ).then((refunds) => refunds.filter((one) => one.external));
  if (found === undefined) throw new Error("there is no external refund");
  return found;
}

describe("a refund", () => {
  test("whose events come before our call is answered is one refund, one reversal, one event", async () => {
    const wired = await connected();
    const { harness, client } = wired;
    const { control } = harness.sandbox;
    const payment = await made(client, AUTOMATIC);
    await control.addFault({ match: { call: "refunds.create" }, fault: { type: "hang", effect: "applied" } });
    const answer = refund(client, payment.id, { amount: 3_000 }, { prefer: "wait=30" });
    await control.waitForHeld();
    await control.webhooksIdle();
    await control.release();
    expect(outcomeOf(await answer)).toBe("201");
    await settled(wired);
    expect(await refundsOf(client, payment.id)).toMatchObject([
      { amount: 3_000, external: false, status: "succeeded" },
    ]);
    const types = await typesOf(client, payment.id);
    expect(types.filter((type) => type.startsWith("refund."))).toEqual([
      "refund.created",
      "refund.succeeded",
    ]);
    const reversals = (await entriesOf(client, payment.id)).filter((entry) =>
      entry.fact.startsWith("refunded:"),
    );
    expect(reversals).toHaveLength(1);
  });

  test("made outside is recorded, followed to its end, and lowers what is refundable", async () => {
    const wired = await connected({ copies: 2 });
    const { harness, client } = wired;
    const payment = await made(client, AUTOMATIC);
    const outside = await harness.sandbox.control.dashboard.refund(objectIdOf(payment), 1_000);
    const found = await externalRefund(client, payment.id);
    expect(found).toMatchObject({ amount: 1_000, provider_refund_id: outside.id });
    await untilRefund(client, found.id, ["succeeded"]);
    await untilShows(client, payment.id, { amount_refunded: 1_000, amount_refundable: 9_000 });
    expect(outcomeOf(await refund(client, payment.id, { amount: 9_001 }))).toBe("422 amount_too_large");
    expect(outcomeOf(await refund(client, payment.id, { amount: 9_000 }))).toBe("201");
    await settled(wired);
    expect(await refundsOf(client, payment.id)).toHaveLength(2);
    expect((await typesOf(client, payment.id)).filter((type) => type.startsWith("refund."))).toEqual([
      "refund.created",
      "refund.succeeded",
      "refund.created",
      "refund.succeeded",
    ]);
  });

  test("made outside that had failed when it was first told of is recorded and frees its amount", async () => {
    const wired = await connected({ mode: "held" });
    const { harness, client, endpointId } = wired;
    const { control } = harness.sandbox;
    const payment = await made(client, AUTOMATIC);
    const outside = await control.dashboard.refund(objectIdOf(payment), 1_000);
    await control.bank.failRefund(outside.id);
    await control.releaseEvents(endpointId, "created");
    const found = await externalRefund(client, payment.id);
    await untilRefund(client, found.id, ["failed"]);
    await untilShows(client, payment.id, { amount_refunded: 0, amount_refundable: 10_000 });
  });

  test.each([
    {
      whose: "ours",
      make: async ({ client }: Connected, id: string) => refund(client, id, { amount: 4_000 }),
    },
    {
      whose: "made outside",
      make: async ({ harness }: Connected, _: string, object: string) =>
        harness.sandbox.control.dashboard.refund(object, 4_000),
    },
  ])(
    "($whose) that fails after it had succeeded is failed, its reversal undone once, its amount free",
    async ({ make }) => {
      const wired = await connected({ copies: 2 });
      const { harness, client } = wired;
      const payment = await made(client, AUTOMATIC);
      await make(wired, payment.id, objectIdOf(payment));
      await untilShows(client, payment.id, { amount_refunded: 4_000 });
      const [record] = await refundsOf(client, payment.id);
      await settled(wired);
      await harness.sandbox.control.bank.failRefund(record?.provider_refund_id ?? "");
      await untilRefund(client, record?.id ?? "", ["failed"]);
      await untilShows(client, payment.id, { amount_refunded: 0, amount_refundable: 10_000 });
      await settled(wired);
      const facts = (await entriesOf(client, payment.id)).map((entry) => entry.fact.split(":")[0]);
      expect(facts.filter((fact) => fact === "refunded" || fact === "refund_failed")).toEqual([
        "refunded",
        "refund_failed",
      ]);
      expect((await typesOf(client, payment.id)).filter((type) => type.startsWith("refund."))).toEqual([
        "refund.created",
        "refund.succeeded",
        "refund.failed",
      ]);
      expect(outcomeOf(await refund(client, payment.id, { amount: 10_000 }))).toBe("201");
    },
  );
});
