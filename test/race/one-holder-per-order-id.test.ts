import { expect, test } from "vitest";
import { documentOf, newKey, pay } from "../support/harness.js";
import { PATIENT, useStage } from "../support/stage.js";

const stage = useStage();
const ROUNDS = 50;

test("of two keys with one order id that race, one pays and the other is told by which payment", async () => {
  const harness = await stage.start();
  const other = await harness.another({ env: PATIENT });
  for (let round = 0; round < ROUNDS; round += 1) {
    const input = { merchant_order_id: `order-${round}` };
    // In one process the two share a batch's turn; in two they race inside PostgreSQL.
    const rival = round % 2 === 0 ? other.deps : harness.deps;
    const [one, two] = await Promise.allSettled([
      pay(harness, { input }),
      pay(harness, { input, deps: rival }),
    ]);
    const winner = one.status === "fulfilled" ? one : two;
    const loser = one.status === "fulfilled" ? two : one;
    if (winner.status !== "fulfilled" || loser.status !== "rejected")
      throw new Error(`round ${round}: not one winner`);
    expect(documentOf(winner.value).status).toBe("succeeded");
    expect(loser.reason).toMatchObject({
      code: "merchant_order_id_taken",
      extra: { payment: { id: documentOf(winner.value).id } },
    });
  }
  const { payment_intents: objects, successful_charges: charges } = await harness.sandbox.control.counts();
  expect({ objects, charges }).toEqual({ objects: ROUNDS, charges: ROUNDS });
});

test("the loser's key stays free: it pays once the order id is free again", async () => {
  const declined = { merchant_order_id: "order-1", payment_method: "pm_card_visa_chargeDeclined" };
  const gate = stage.gate("before_fence");
  const harness = await stage.start({ probe: gate.probe });
  const first = await pay(harness, { input: declined });
  expect(documentOf(first).status).toBe("failed");
  await gate.reached();

  const key = newKey();
  const early = await pay(harness, { key, input: { merchant_order_id: "order-1" } }).catch(
    (error: unknown) => error,
  );
  expect(early).toMatchObject({ code: "merchant_order_id_taken" });
  gate.open();
  await harness.sandbox.control.waitForRequests({
    filter: { call: "payment_intents.retrieve" },
    until: "settled",
  });
  await expect
    .poll(async () => (await harness.deps.db.sql`select 1 from payments where holds_order_id`).length)
    .toBe(0);
  expect(documentOf(await pay(harness, { key, input: { merchant_order_id: "order-1" } })).status).toBe(
    "succeeded",
  );
});
