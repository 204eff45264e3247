import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Harness, startHarness } from "../support/harness.js";
import { OPEN_INBOX } from "../support/provider-events.js";
import {
  COMPARING,
  compareNow,
  emptyRows,
  findingsOf,
  findingWords,
  payMany,
  payOne,
  untilSettled,
} from "../support/reconciliation.js";
import { until } from "../support/until.js";

let harness: Harness;
beforeAll(async () => {
  harness = await startHarness({ env: { ...COMPARING, ...OPEN_INBOX }, workers: ["attempts"] });
});
beforeEach(() => emptyRows(harness));
afterAll(() => harness.stop());

const refundRows = () =>
  harness.deps.db.sql<
    { status: string; external: boolean; amount: string; provider_refund_id: string }[]
  >`select * from refunds order by amount`;

describe("a refund that was made at the provider", () => {
  test("is recorded once, whatever the number of runs, and counts as refunded", async () => {
    const { paymentId, objectId } = await payOne(harness);
    const refund = await harness.sandbox.control.dashboard.refund(objectId, 1_000);
    await untilSettled(harness);
    for (let runs = 0; runs < 2; runs += 1) await compareNow(harness.deps);
    expect(await findingWords(harness)).toEqual([`refund_outside ${refund.id} repaired`]);
    const [row, ...more] = await until("a followed refund", refundRows, (rows) =>
      rows.every(({ status }) => status === "succeeded"),
    );
    expect(more).toEqual([]);
    expect(row).toMatchObject({ external: true, amount: "1000", provider_refund_id: refund.id });
    const { sql } = harness.deps.db;
    expect(await sql`select amount_refunded from payments where id = ${paymentId}`).toEqual([
      { amount_refunded: "1000" },
    ]);
  });

  test("and failed there after it had succeeded here is brought up to it", async () => {
    const { objectId } = await payOne(harness);
    const refund = await harness.sandbox.control.dashboard.refund(objectId, 1_000);
    await untilSettled(harness);
    await compareNow(harness.deps);
    await until("a refund", refundRows, ([row]) => row?.status === "succeeded");
    await harness.sandbox.control.bank.failRefund(refund.id);
    await untilSettled(harness);
    await compareNow(harness.deps);
    expect((await refundRows())[0]?.status).toBe("failed");
    expect(await findingWords(harness)).toEqual([
      `refund_differs ${refund.id} repaired`,
      `refund_outside ${refund.id} repaired`,
    ]);
  });
});

test("a hold that was released is no refund: after a cancel, a part captured and a lapse nothing is found", async () => {
  const { control } = harness.sandbox;
  const held = await payMany(harness, 3, { input: { capture_method: "manual" } });
  await control.dashboard.cancel(held[0]!.objectId);
  await control.dashboard.capture(held[1]!.objectId, 3_000);
  await control.bank.expireAuthorization(held[2]!.objectId);
  expect(await control.listRefunds()).toHaveLength(3);
  await untilSettled(harness);
  await compareNow(harness.deps);
  await compareNow(harness.deps);
  expect(await refundRows()).toEqual([]);
  expect((await findingsOf(harness)).map(({ kind, state }) => `${kind} ${state}`)).toEqual([
    "status_differs repaired",
    "status_differs repaired",
    "status_differs repaired",
  ]);
});
