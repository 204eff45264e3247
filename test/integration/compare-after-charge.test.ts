import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { PageRequest } from "../../src/domain/provider.js";
import { type Harness, pay, startHarness, untilStatus } from "../support/harness.js";
import { OPEN_INBOX, withProvider } from "../support/provider-events.js";
import {
  COMPARING,
  compareNow,
  emptyRows,
  findingsOf,
  findingWords,
  payOne,
  untilSettled,
} from "../support/reconciliation.js";

let harness: Harness;
beforeAll(async () => {
  harness = await startHarness({ env: { ...COMPARING, ...OPEN_INBOX }, workers: ["attempts"] });
});
beforeEach(() => emptyRows(harness));
afterAll(() => harness.stop());

describe("a dispute", () => {
  test("that nobody told of is recorded, with its money, and what comes later too", async () => {
    const { paymentId, objectId } = await payOne(harness);
    const dispute = await harness.sandbox.control.bank.openDispute(objectId, {});
    await untilSettled(harness);
    await compareNow(harness.deps);
    const shown = async () => {
      const [row] = await harness.deps.db.sql<{ disputes: unknown }[]>`
        select disputes from payments where id = ${paymentId}`;
      return row?.disputes;
    };
    expect(await shown()).toMatchObject([{ status: "open", movements: [{ amount: -4_200 }] }]);
    await harness.sandbox.control.bank.closeDispute(dispute.id, "won");
    await untilSettled(harness);
    await compareNow(harness.deps);
    expect(await shown()).toMatchObject([{ status: "won", movements: [{}, { amount: 4_200 }] }]);
    expect(await findingWords(harness)).toEqual([`dispute_differs ${dispute.id} repaired`]);
  });
});

test("a dispute that the list does not show is found by its money, and told once for all its movements", async () => {
  const { paymentId, objectId } = await payOne(harness);
  const dispute = await harness.sandbox.control.bank.openDispute(objectId, {});
  await harness.sandbox.control.bank.closeDispute(dispute.id, "won");
  await untilSettled(harness);
  const listDisputes = async (page: PageRequest) => {
    const listed = await harness.deps.provider.listDisputes(page);
    return { ...listed, items: [] };
  };
  await compareNow(withProvider(harness.deps, { listDisputes }));
  expect(await findingWords(harness)).toEqual([`dispute_differs ${dispute.id} repaired`]);
  const { sql } = harness.deps.db;
  expect(await sql`select disputes from payments where id = ${paymentId}`).toMatchObject([
    { disputes: [{ status: "won", movements: [{}, {}] }] },
  ]);
});

describe("a fee", () => {
  const fees = () => harness.deps.db.sql<{ fact: string; amount: string }[]>`
    select fact, amount from ledger_entries where fact like 'fee:%'`;

  test("that the books lack is posted by the payment's own attempt", async () => {
    await payOne(harness);
    const [fee] = await fees();
    for (const table of ["ledger_uncounted", "ledger_entries"]) {
      await harness.deps.db.sql`delete from ${harness.deps.db.sql(table)} where fact like 'fee:%'`;
    }
    await untilSettled(harness);
    await compareNow(harness.deps);
    expect(await fees()).toEqual([fee]);
    expect(await findingWords(harness)).toEqual([`fee_differs ${fee?.fact.slice(4)} repaired`]);
  });

  test("that the books have with another amount is told, and the books are not touched", async () => {
    await payOne(harness);
    await harness.deps.db.sql`update ledger_entries set amount = amount + 1 where fact like 'fee:%'`;
    const before = await fees();
    await untilSettled(harness);
    await compareNow(harness.deps);
    expect(await fees()).toEqual(before);
    expect(await findingsOf(harness)).toMatchObject([
      { kind: "fee_differs", state: "open", ours: { fee: 153, currency: "usd" } },
    ]);
  });
});

test("a capture of an old object is found by its money, though its object lies before the window", async () => {
  const { paymentId, objectId } = await payOne(harness, { input: { capture_method: "manual" } });
  const { control } = harness.sandbox;
  await control.patchPaymentIntent(objectId, { created: Math.floor(Date.now() / 1_000) - 86_400 });
  await control.dashboard.capture(objectId);
  await untilSettled(harness);
  await compareNow(harness.deps);
  await untilStatus(harness, paymentId, "succeeded");
  expect(await findingWords(harness)).toEqual([`status_differs ${objectId} repaired`]);
});

test("events that the provider could not deliver are taken into the inbox, each once", async () => {
  const { control } = harness.sandbox;
  const endpoint = await control.addWebhookEndpoint({
    url: "http://127.0.0.1:9/",
    secrets: ["whsec_lost"],
    mode: "lost",
  });
  const { objectId } = await payOne(harness);
  await untilSettled(harness);
  for (let runs = 0; runs < 2; runs += 1) await compareNow(harness.deps);
  const { sql } = harness.deps.db;
  const stored = await sql<{ type: string; object_id: string }[]>`
    select type, object_id from provider_events order by type`;
  expect(stored).toEqual([
    { type: "payment_intent.created", object_id: objectId },
    { type: "payment_intent.succeeded", object_id: objectId },
  ]);
  expect((await findingsOf(harness)).map(({ kind, state }) => `${kind} ${state}`)).toEqual([
    "event_undelivered repaired",
    "event_undelivered repaired",
  ]);
  await control.removeWebhookEndpoint(endpoint.id);
  expect((await pay(harness)).type).toBe("final");
});
