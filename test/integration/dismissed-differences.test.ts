import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { AttemptReference } from "../../src/domain/provider-event.js";
import type { ReviewReason } from "../../src/domain/review-reason.js";
import { newId } from "../../src/lib/ids.js";
import { flag, RECONCILIATION } from "../../src/operations/provider-event-steps.js";
import type { ClaimedEvent } from "../../src/store/provider-events.js";
import { documentOf, type Harness, pay, startHarness } from "../support/harness.js";

let harness: Harness;
let payment: { readonly tenant_id: string; readonly payment_id: string; readonly attempt_id: string };
beforeAll(async () => {
  harness = await startHarness({ workers: [] });
});
beforeEach(async () => {
  const { id } = documentOf(await pay(harness, { waitMs: 0 }));
  const [row] = await harness.deps.db.sql<{ id: string }[]>`select id from attempts where payment_id = ${id}`;
  payment = { tenant_id: harness.caller.tenantId, payment_id: id, attempt_id: row?.id ?? "" };
});
afterAll(() => harness.stop());

interface Told {
  readonly reason?: ReviewReason;
  readonly object?: string;
  /** `reconciliation` tells it in each of its runs. */
  readonly by?: string;
}

async function tell({
  reason = "provider_object_stray",
  object = "pi_second",
  by = RECONCILIATION,
}: Told = {}) {
  const { tenant_id: tenantId, payment_id: paymentId, attempt_id: id } = payment;
  const attempt: AttemptReference = {
    tenantId,
    paymentId,
    id,
    kind: "charge",
    livemode: false,
    objectId: "pi_own",
  };
  const now = new Date();
  const event: ClaimedEvent = {
    provider: "stripe",
    eventId: "rec_1",
    type: by,
    livemode: false,
    objectId: object,
    payload: "",
    tries: 1,
    receivedAt: now,
    outcome: null,
    claimedAt: now,
  };
  await flag(harness.deps, event, attempt, reason, null);
}

/** A person has said so, and the review is closed. */
async function decided(reason: string, about: Partial<typeof payment> = {}): Promise<void> {
  const { sql } = harness.deps.db;
  const row = { ...payment, ...about, id: newId("tl"), kind: "request", reason };
  await sql`insert into timeline ${sql(row)}`;
  await sql`update reviews set closed_at = now(), closed_by = 'person' where payment_id = ${payment.payment_id}`;
}

async function openReviews(): Promise<number> {
  const rows = await harness.deps.db.sql`
    select 1 from reviews where payment_id = ${payment.payment_id} and closed_at is null`;
  return rows.length;
}

describe("a difference that a person has dismissed", () => {
  test("opens no further review, however often it is told", async () => {
    await tell();
    expect(await openReviews()).toBe(1);
    await decided("dismiss requested: known");
    await tell();
    expect(await openReviews()).toBe(0);
  });

  test.each<[string, Told]>([
    ["another object of the payment does", { object: "pi_third" }],
    ["another reason does", { reason: "provider_amount_mismatch" }],
    ["an event about it does, which is told once", { by: "payment_intent.succeeded" }],
  ])("%s", async (_name, changes) => {
    await tell();
    await decided("dismiss requested: known");
    await tell(changes);
    expect(await openReviews()).toBe(1);
  });
});

describe("a difference opens its review again", () => {
  test("where it was decided about otherwise", async () => {
    await tell();
    await decided("adopt_provider_object requested: known");
    await tell();
    expect(await openReviews()).toBe(1);
  });

  test("where what was dismissed is another attempt's", async () => {
    await tell();
    await decided("dismiss requested: known", { attempt_id: "att_other" });
    await tell();
    expect(await openReviews()).toBe(1);
  });

  test("where the dismissal is older than the first time that it was told", async () => {
    await decided("dismiss requested: something else");
    await tell();
    await harness.deps.db.sql`update reviews set closed_at = now(), closed_by = 'fact'
                               where payment_id = ${payment.payment_id}`;
    await tell();
    expect(await openReviews()).toBe(1);
  });
});
