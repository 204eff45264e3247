import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { ListedCharge, PageOutcome, PageRequest } from "../../src/domain/provider.js";
import { reportOf } from "../../src/operations/list-findings.js";
import { type Harness, pay, startHarness, untilStatus } from "../support/harness.js";
import { withProvider } from "../support/provider-events.js";
import {
  COMPARING,
  compareNow,
  emptyRows,
  findingsOf,
  findingWords,
  objectsById,
  type PaidObject,
  payMany,
  strayOf,
  untilSettled,
} from "../support/reconciliation.js";

let harness: Harness;
beforeAll(async () => {
  harness = await startHarness({ env: COMPARING, workers: ["attempts"] });
});
beforeEach(() => emptyRows(harness));
afterAll(() => harness.stop());

async function payOne(input: Parameters<typeof payMany>[2] = {}): Promise<PaidObject> {
  const [paid] = await payMany(harness, 1, input);
  if (paid === undefined) throw new Error("nothing was paid");
  return paid;
}

const cancels = () => harness.sandbox.control.listRequests({ call: "payment_intents.cancel" });

describe("an object that the list does not show", () => {
  test("is no difference while the provider has it: the list may lag behind its objects", async () => {
    await payMany(harness, 3);
    await untilSettled(harness);
    const listCharges = async (page: PageRequest): Promise<PageOutcome<ListedCharge>> => {
      const listed = await harness.deps.provider.listCharges(page);
      return listed.type === "page" ? { ...listed, items: listed.items.slice(1) } : listed;
    };
    await compareNow(withProvider(harness.deps, { listCharges }));
    expect(await findingWords(harness)).toEqual([]);
  });

  test("is missing there when the provider says so, and its payment waits for a person", async () => {
    const [gone, ...others] = await payMany(harness, 3);
    await untilSettled(harness);
    await harness.sandbox.control.removePaymentIntent(gone!.objectId);
    await compareNow(harness.deps);
    expect(others).toHaveLength(2);
    expect(await findingWords(harness)).toEqual([`missing_there ${gone!.objectId} open`]);
    const { sql } = harness.deps.db;
    expect(await sql`select payment_id, reason from reviews`).toEqual([
      { payment_id: gone!.paymentId, reason: "provider_object_missing" },
    ]);
  });
});

describe("a payment that is behind its object", () => {
  test("is brought up to it by its own attempt, and the finding is repaired in the same run", async () => {
    const { paymentId, objectId } = await payOne({ input: { capture_method: "manual" } });
    await harness.sandbox.control.dashboard.capture(objectId);
    await untilSettled(harness);
    await compareNow(harness.deps);
    await untilStatus(harness, paymentId, "succeeded");
    expect(await findingWords(harness)).toEqual([`status_differs ${objectId} repaired`]);
    expect(await findingsOf(harness)).toMatchObject([
      { payment_id: paymentId, detail: "the payment is authorized, the object succeeded" },
    ]);
  });

  test("is not told of while its own change is younger than the lag", async () => {
    const { objectId } = await payOne({ input: { capture_method: "manual" } });
    await untilSettled(harness);
    await harness.sandbox.control.dashboard.capture(objectId);
    await harness.deps.db.sql`update payments set updated_at = now()`;
    const stale = { ...harness.deps, settings: { ...harness.deps.settings, reconcileLagMs: 60_000 } };
    await compareNow(stale);
    expect(await findingWords(harness)).toEqual([]);
  });

  test("and whose provider does not answer stays open, and is repaired by a later run", async () => {
    const { paymentId, objectId } = await payOne({ input: { capture_method: "manual" } });
    await harness.sandbox.control.dashboard.capture(objectId);
    await untilSettled(harness);
    const match = { call: "payment_intents.retrieve", object_id: objectId };
    await harness.sandbox.control.addFault({ match, times: null, fault: { type: "error", status: 500 } });
    await compareNow(harness.deps);
    expect(await findingWords(harness)).toEqual([`status_differs ${objectId} open`]);
    await harness.sandbox.control.clearFaults();
    await untilStatus(harness, paymentId, "succeeded");
    await compareNow(harness.deps);
    expect(await findingWords(harness)).toEqual([`status_differs ${objectId} repaired`]);
  });
});

describe("an object of ours that nobody confirms", () => {
  test("is canceled once, under a key of its own, and never looked at again", async () => {
    const paid = await payOne();
    const stray = await strayOf(harness, paid);
    await untilSettled(harness);
    for (let runs = 0; runs < 2; runs += 1) await compareNow(harness.deps);
    expect(await findingWords(harness)).toEqual([`orphaned_object ${stray} repaired`]);
    expect(await cancels()).toMatchObject([
      { object_id: stray, idempotency_key: expect.stringMatching(`:orphan:${stray}$`) as string },
    ]);
    expect((await objectsById(harness)).get(stray)?.payment_intent.status).toBe("canceled");
    expect((await objectsById(harness)).get(paid.objectId)?.successful_charges).toBe(1);
  });

  test("is left alone while a live attempt may still adopt it", async () => {
    const paid = await payOne();
    const stray = await strayOf(harness, paid);
    await untilSettled(harness);
    await harness.deps.db.sql`
      update attempts set state = 'create_unknown', provider_payment_id = null, unresolved = true,
             due_at = now() + interval '1 hour', lease_owner = 'somebody', lease_expires_at = now() + interval '1 hour'`;
    await harness.deps.db.sql`update payments set status = 'processing'`;
    await compareNow(harness.deps);
    expect(await cancels()).toEqual([]);
    expect((await objectsById(harness)).get(stray)?.payment_intent.status).toBe("requires_confirmation");
  });

  test("is left alone where no row names it, since its client's next try may adopt it", async () => {
    const paid = await payOne();
    const stray = await strayOf(harness, paid);
    await untilSettled(harness);
    await harness.sandbox.control.patchPaymentIntent(stray, {
      metadata: { payment_attempt_id: "att_lost", tenant_id: harness.caller.tenantId },
    });
    await compareNow(harness.deps);
    expect(await findingWords(harness)).toEqual([`orphaned_object ${stray} open`]);
    expect(await cancels()).toEqual([]);
  });

  test("is canceled where no row names it once the provider's keys of its time are gone", async () => {
    const paid = await payOne();
    const stray = await strayOf(harness, paid);
    await untilSettled(harness);
    await harness.sandbox.control.patchPaymentIntent(stray, {
      metadata: { payment_attempt_id: "att_lost", tenant_id: harness.caller.tenantId },
    });
    const late = { ...harness.deps, settings: { ...harness.deps.settings, providerKeyLifetimeMs: 1 } };
    await compareNow(late);
    expect(await findingWords(harness)).toEqual([`orphaned_object ${stray} repaired`]);
  });

  test("whose cancel is lost is canceled by a later run", async () => {
    const stray = await strayOf(harness, await payOne());
    await untilSettled(harness);
    const match = { call: "payment_intents.cancel" };
    await harness.sandbox.control.addFault({ match, times: 1, fault: { type: "error", status: 500 } });
    await compareNow(harness.deps);
    expect(await findingsOf(harness)).toMatchObject([
      { object_id: stray, state: "open", detail: expect.stringContaining("came to unknown") as string },
    ]);
    await compareNow(harness.deps);
    expect(await findingWords(harness)).toEqual([`orphaned_object ${stray} repaired`]);
  });
});

test("a second object on which money moved is a person's to judge, and nothing is done to it", async () => {
  const paid = await payOne();
  const second = await strayOf(harness, paid, true);
  await untilSettled(harness);
  await compareNow(harness.deps);
  expect(await findingWords(harness)).toEqual([`second_object ${second} open`]);
  const { sql } = harness.deps.db;
  expect(await sql`select payment_id, reason from reviews`).toEqual([
    { payment_id: paid.paymentId, reason: "provider_object_stray" },
  ]);
  expect((await objectsById(harness)).get(second)?.payment_intent.status).toBe("succeeded");
});

test("another installation's objects on the same account, and what carries no marks, are none of ours", async () => {
  const stray = await strayOf(harness, await payOne(), true);
  await untilSettled(harness);
  const metadata = { payment_attempt_id: "att_1", tenant_id: "ten_elsewhere" };
  await harness.sandbox.control.patchPaymentIntent(stray, { metadata });
  await compareNow(harness.deps);
  await harness.sandbox.control.patchPaymentIntent(stray, { metadata: {} });
  await compareNow(harness.deps);
  expect(await findingWords(harness)).toEqual([]);
});

test("what differs no longer is gone after the next run, and opens again when it is back", async () => {
  const { objectId } = await payOne();
  await untilSettled(harness);
  const words: string[][] = [];
  for (const amount of [4_300, 4_200, 4_300]) {
    await harness.sandbox.control.patchPaymentIntent(objectId, { amount });
    await compareNow(harness.deps);
    words.push(await findingWords(harness));
  }
  const [finding] = await findingsOf(harness);
  expect(words).toEqual(["open", "gone", "open"].map((state) => [`amount_differs ${objectId} ${state}`]));
  expect(finding).toMatchObject({ ours: expect.anything() as unknown });
});

test("the report tells what the run compared, what is open, and what is unfinished on our own side", async () => {
  const paid = await payOne();
  await untilSettled(harness);
  await harness.sandbox.control.patchPaymentIntent(paid.objectId, { amount: 4_300 });
  await harness.deps.db.sql`
    update attempts set unknown_since = now() - interval '2 days', due_at = now() + interval '1 hour'`;
  const id = await compareNow(harness.deps);
  expect(await reportOf(harness.deps, id)).toMatchObject({
    run: { id, state: "completed", trigger: "command", error: null },
    findings: [
      {
        kind: "amount_differs",
        paymentId: paid.paymentId,
        ours: { amount: 4_200, currency: "usd" },
        theirs: { amount: 4_300, currency: "usd" },
      },
    ],
    unfinished: { openReviews: 1, parkedEvents: 0, pastBound: [{ paymentId: paid.paymentId }] },
  });
  expect(await reportOf(harness.deps, "rec_none")).toBeNull();
});

test("a list that the key may not read is left out and told, and the others are compared", async () => {
  const { objectId } = await payOne();
  await untilSettled(harness);
  await harness.sandbox.control.patchPaymentIntent(objectId, { amount: 4_300 });
  await harness.sandbox.control.addFault({
    match: { call: ["disputes.list", "balance_transactions.list"] },
    times: null,
    fault: { type: "error", status: 403 },
  });
  const report = await reportOf(harness.deps, await compareNow(harness.deps));
  expect(report?.run).toMatchObject({
    state: "completed",
    error: "not compared, since the key may not read it: disputes, transactions",
  });
  expect(await findingWords(harness)).toEqual([`amount_differs ${objectId} open`]);
  expect((await pay(harness)).type).toBe("final");
});
