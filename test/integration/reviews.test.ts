import { describe, expect, test } from "vitest";
import { listOpenReviews } from "../../src/operations/list-reviews.js";
import { documentOf, type Harness, newKey, pay, until, untilStatus } from "../support/harness.js";
import { HASTY, onlyObject, useStage, wireOf } from "../support/stage.js";

const stage = useStage();

async function expectOneReview(harness: Harness, reason: string): Promise<void> {
  const open = await listOpenReviews(harness.deps, harness.caller.tenantId, 10);
  expect(open.map((review) => review.reason)).toEqual([reason]);
}

/** Asked about again and again, the payment keeps its one review, its key stays in progress, and nothing is sent. */
async function expectAskedOn(harness: Harness, key: string): Promise<void> {
  const { control } = harness.sandbox;
  const sent = async () => (await wireOf(harness)).filter((words) => !/^(list|retrieve) /.test(words));
  const before = await sent();
  const [last] = (await control.listRequests()).slice(-1);
  const since = { method: "GET", after_sequence: last?.sequence ?? 0 };
  await control.waitForRequests({ filter: since, count: 3 });
  expect(await sent()).toEqual(before);
  await expect(pay(harness, { key })).rejects.toMatchObject({
    code: "idempotency_key_in_progress",
    extra: { payment: { status: "needs_review", resolution: { state: "review" } } },
  });
}

async function expectClosedByFact(harness: Harness): Promise<void> {
  expect(await listOpenReviews(harness.deps, null, 10)).toEqual([]);
  const rows = await harness.deps.db.sql<{ closed_by: string }[]>`select closed_by from reviews`;
  expect(rows.map((row) => row.closed_by)).toEqual(["fact"]);
}

const WRONG_FACTS = [
  {
    name: "another amount",
    changes: { amount: 900 },
    right: { amount: 4200 },
    reason: "provider_amount_mismatch",
  },
  {
    name: "another currency",
    changes: { currency: "eur" },
    right: { currency: "usd" },
    reason: "provider_amount_mismatch",
  },
  {
    name: "another tenant",
    changes: { metadata: { tenant_id: "ten_other" } },
    right: { metadata: {} },
    reason: "provider_object_foreign",
  },
  {
    name: "another attempt",
    changes: { metadata: { payment_attempt_id: "att_other" } },
    right: { metadata: {} },
    reason: "provider_object_foreign",
  },
] as const;

describe.each(WRONG_FACTS)("an object that shows $name", ({ changes, right, reason }) => {
  test("after the confirm is a person's to judge, until it shows the right one", async () => {
    const gate = stage.gate("before_confirm");
    const harness = await stage.start({ probe: gate.probe });
    const key = newKey();
    const answer = pay(harness, { key });
    await gate.reached();
    const { payment_intent: object } = await onlyObject(harness);
    await harness.sandbox.control.patchPaymentIntent(object.id, changes);
    gate.open();
    expect(documentOf(await answer).status).toBe("needs_review");
    await expectOneReview(harness, reason);
    await expectAskedOn(harness, key);
    const { metadata } = object;
    await harness.sandbox.control.patchPaymentIntent(object.id, {
      amount_received: 4200,
      ...right,
      metadata,
    });
    await untilStatus(harness, documentOf(await answer).id, "succeeded");
    await expectClosedByFact(harness);
  });
});

test("an object of another amount that a look-up finds is never confirmed", async () => {
  const gate = stage.gate("before_find");
  const harness = await stage.start({ env: HASTY, probe: gate.probe });
  const { control } = harness.sandbox;
  await control.addFault({
    match: { call: "payment_intents.create" },
    fault: { type: "reset", effect: "applied" },
  });
  const key = newKey();
  const answer = pay(harness, { key });
  await gate.reached();
  const { payment_intent: object } = await onlyObject(harness);
  await control.patchPaymentIntent(object.id, { amount: 4201 });
  gate.open();
  expect(documentOf(await answer).status).toBe("needs_review");
  await expectAskedOn(harness, key);
  expect((await onlyObject(harness)).successful_charges).toBe(0);
  await control.patchPaymentIntent(object.id, { amount: 4200 });
  await untilStatus(harness, documentOf(await answer).id, "succeeded");
  await expectClosedByFact(harness);
});

test("money that is short of the amount is no success", async () => {
  const gate = stage.gate("before_get");
  const harness = await stage.start({ env: HASTY, probe: gate.probe });
  const { control } = harness.sandbox;
  await control.addFault({
    match: { call: "payment_intents.confirm" },
    fault: { type: "reset", effect: "applied" },
  });
  const answer = pay(harness);
  await gate.reached();
  const { payment_intent: object } = await onlyObject(harness);
  await control.patchPaymentIntent(object.id, { amount_received: 900 });
  gate.open();
  expect(documentOf(await answer).status).toBe("needs_review");
  await expectOneReview(harness, "provider_amount_mismatch");
});

test("a 404 for an id that was committed is never absence: it is asked about until the object is there again", async () => {
  const harness = await stage.start({ env: HASTY });
  const { control } = harness.sandbox;
  await control.addFault({
    match: { call: "payment_intents.confirm" },
    fault: { type: "reset", effect: "applied" },
  });
  await control.addFault({
    match: { call: "payment_intents.retrieve" },
    times: null,
    fault: { type: "error", status: 404 },
  });
  const key = newKey();
  const answer = await pay(harness, { key });
  expect(documentOf(answer).status).toBe("needs_review");
  await expectOneReview(harness, "provider_object_missing");
  await expectAskedOn(harness, key);
  await control.clearFaults();
  await untilStatus(harness, documentOf(answer).id, "succeeded");
  await expectClosedByFact(harness);
});

describe("an outcome that stays unknown", () => {
  test("opens one review beside the asking, and a later fact closes it", async () => {
    const harness = await stage.start({ env: { ...HASTY, UNKNOWN_REVIEW_AFTER_MS: "300" } });
    const { control } = harness.sandbox;
    await control.addFault({
      match: { call: "payment_intents.confirm" },
      fault: { type: "reset", effect: "applied" },
    });
    const silent = {
      match: { call: "payment_intents.retrieve" },
      times: null,
      fault: { type: "error", status: 503 },
    } as const;
    await control.addFault(silent);
    const key = newKey();
    const answer = await pay(harness, { key });
    expect(documentOf(answer).status).toBe("needs_review");
    await expectOneReview(harness, "outcome_unknown");
    await expectAskedOn(harness, key);
    await control.clearFaults();
    await untilStatus(harness, documentOf(answer).id, "succeeded");
    await expectClosedByFact(harness);
  });

  test("does not, before its time is over", async () => {
    const harness = await stage.start({ env: HASTY });
    const { control } = harness.sandbox;
    await control.addFault({
      match: { call: "payment_intents.create" },
      fault: { type: "reset", effect: "applied" },
    });
    await control.addFault({
      match: { call: "payment_intents.list" },
      times: 4,
      fault: { type: "error", status: 503 },
    });
    const answer = await pay(harness);
    expect(documentOf(answer).status).toBe("succeeded");
    expect(await harness.deps.db.sql`select 1 from reviews`).toEqual([]);
  });

  test("past its budget and then found to be without effect, ends as failed and closes the review", async () => {
    const harness = await stage.start({
      env: { ...HASTY, UNKNOWN_REVIEW_AFTER_MS: "300", ATTEMPT_RETRY_BUDGET_MS: "1000" },
    });
    const { control } = harness.sandbox;
    await control.addFault({
      match: { call: "payment_intents.confirm" },
      fault: { type: "reset", effect: "none" },
    });
    await control.addFault({
      match: { call: "payment_intents.retrieve" },
      times: null,
      fault: { type: "error", status: 503 },
    });
    const key = newKey();
    const answer = await pay(harness, { key });
    const { id } = documentOf(answer);
    expect(documentOf(answer).status).toBe("needs_review");
    await until(
      "an attempt past its budget",
      () => harness.deps.db.sql`select 1 from attempts where created_at < now() - interval '1 second'`,
      (rows) => rows.length === 1,
    );
    await control.clearFaults();
    expect(await untilStatus(harness, id, "failed")).toMatchObject({ failure: { retry: "same_key" } });
    await expectClosedByFact(harness);
    expect(documentOf(await pay(harness, { key })).status).toBe("succeeded");
  });
});
