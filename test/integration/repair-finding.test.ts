import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type {
  PageOutcome,
  PageRequest,
  ProviderRefund,
  RefundLookupOutcome,
} from "../../src/domain/provider.js";
import { Comparison } from "../../src/operations/reconcile.js";
import { type Harness, startHarness } from "../support/harness.js";
import { withProvider } from "../support/provider-events.js";
import {
  COMPARING,
  compareNow,
  emptyRows,
  findingsOf,
  findingWords,
  objectsById,
  payOne,
  strayOf,
  untilSettled,
} from "../support/reconciliation.js";
import { lastReview, resolve, untilClosed } from "../support/reviews.js";

let harness: Harness;
beforeAll(async () => {
  harness = await startHarness({ env: COMPARING, workers: ["attempts"] });
});
beforeEach(() => emptyRows(harness));
afterAll(() => harness.stop());

const cancels = () => harness.sandbox.control.listRequests({ call: "payment_intents.cancel" });

describe("an object of ours that nobody confirms", () => {
  test("is canceled once, under a key of its own, and never looked at again", async () => {
    const paid = await payOne(harness);
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
    const paid = await payOne(harness);
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
    const paid = await payOne(harness);
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
    const paid = await payOne(harness);
    const stray = await strayOf(harness, paid);
    await untilSettled(harness);
    await harness.sandbox.control.patchPaymentIntent(stray, {
      metadata: { payment_attempt_id: "att_lost", tenant_id: harness.caller.tenantId },
    });
    await compareNow(harness.deps);
    expect(await findingWords(harness)).toEqual([`orphaned_object ${stray} open`]);
    const late = { ...harness.deps, settings: { ...harness.deps.settings, providerKeyLifetimeMs: 1 } };
    // Also where it was made before the window by then.
    const comparison = new Comparison(late);
    await comparison.drive(await comparison.begin({ from: new Date(Date.now() - 1), to: new Date() }));
    expect(await findingWords(harness)).toEqual([`orphaned_object ${stray} repaired`]);
  });

  test("whose cancel is lost is canceled by a later run", async () => {
    const stray = await strayOf(harness, await payOne(harness));
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
  const paid = await payOne(harness);
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

test("a second object that a person has dismissed stays in the report, and opens no further review", async () => {
  await strayOf(harness, await payOne(harness), true);
  await untilSettled(harness);
  await compareNow(harness.deps);
  await resolve(harness, (await lastReview(harness)).id, "dismiss");
  await untilClosed(harness, (await lastReview(harness)).id);
  for (let runs = 0; runs < 2; runs += 1) await compareNow(harness.deps);
  const { sql } = harness.deps.db;
  expect(await sql`select reason, closed_by from reviews`).toEqual([
    { reason: "provider_object_stray", closed_by: "person" },
  ]);
  expect(await findingsOf(harness)).toMatchObject([{ kind: "second_object", state: "open" }]);
});

test("an outside refund that fits no payment opens no further review either, once a person has dismissed it", async () => {
  const { objectId } = await payOne(harness);
  const { id } = await harness.sandbox.control.dashboard.refund(objectId, 1_000);
  await untilSettled(harness);
  const inEuros = async (page: PageRequest): Promise<PageOutcome<ProviderRefund>> => {
    const listed = await harness.deps.provider.listRefunds(page);
    if (listed.type !== "page") return listed;
    return { ...listed, items: listed.items.map((refund) => ({ ...refund, currency: "eur" })) };
  };
  const getRefund = async (refundId: string): Promise<RefundLookupOutcome> => {
    const found = await harness.deps.provider.getRefund(refundId);
    return found.type === "found" ? { ...found, refund: { ...found.refund, currency: "eur" } } : found;
  };
  const deps = withProvider(harness.deps, { listRefunds: inEuros, getRefund });
  await compareNow(deps);
  await resolve(harness, (await lastReview(harness)).id, "dismiss");
  await untilClosed(harness, (await lastReview(harness)).id);
  await compareNow(deps);
  const { sql } = harness.deps.db;
  expect(await sql`select reason, closed_by from reviews`).toEqual([
    { reason: "outside_refund_mismatch", closed_by: "person" },
  ]);
  expect(await findingWords(harness)).toEqual([`refund_outside ${id} open`]);
});

test("another installation's objects on the same account, and what carries no marks, are none of ours", async () => {
  const stray = await strayOf(harness, await payOne(harness), true);
  await untilSettled(harness);
  const metadata = { payment_attempt_id: "att_1", tenant_id: "ten_elsewhere" };
  await harness.sandbox.control.patchPaymentIntent(stray, { metadata });
  await compareNow(harness.deps);
  await harness.sandbox.control.patchPaymentIntent(stray, { metadata: {} });
  await compareNow(harness.deps);
  expect(await findingWords(harness)).toEqual([]);
});
