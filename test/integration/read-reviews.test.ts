import { expect, it } from "vitest";
import { getPayment } from "../../src/operations/read-payments.js";
import { findReview, getReview, listReviews, showReview } from "../../src/operations/read-reviews.js";
import { paid } from "../support/effects.js";
import { newKey, untilStatus } from "../support/harness.js";
import { useStage } from "../support/stage.js";

const stage = useStage();

it("a review is read with its evidence by its own tenant, and is nothing to another", async () => {
  const harness = await stage.start();
  const id = await paid(harness);
  const { tenantId } = await getPayment(harness.deps, harness.caller, id);
  const { sql } = harness.deps.db;
  const reviewId = `rev_${newKey().padEnd(32, "0")}`;
  await sql`insert into reviews (tenant_id, id, payment_id, attempt_id, reason)
    select tenant_id, ${reviewId}, payment_id, id, 'provider_object_stray' from attempts where payment_id = ${id}`;

  const evidence = await getReview(harness.deps, harness.caller, reviewId);
  expect(evidence).toMatchObject({
    review: { id: reviewId, reason: "provider_object_stray" },
    payment: { id },
  });
  expect(evidence.allowed.map(({ resolution }) => resolution)).toEqual(["dismiss"]);
  expect(await showReview(harness.deps, reviewId)).toMatchObject({ review: { id: reviewId } });
  expect(await findReview(sql, reviewId)).toMatchObject({ tenantId });
  const stranger = { ...harness.caller, tenantId: "ten_stranger" };
  await expect(getReview(harness.deps, stranger, reviewId)).rejects.toMatchObject({ code: "not_found" });
  const page = { limit: 10, cursor: null };
  expect((await listReviews(harness.deps, harness.caller, { status: "open" }, page)).data).toHaveLength(1);
  expect((await listReviews(harness.deps, stranger, { status: "open" }, page)).data).toEqual([]);

  await sql`update reviews set closed_at = now(), closed_by = 'person' where id = ${reviewId}`;
  expect((await listReviews(harness.deps, harness.caller, { status: "open" }, page)).data).toEqual([]);
  expect((await listReviews(harness.deps, harness.caller, { status: "closed" }, page)).data).toHaveLength(1);
  await untilStatus(harness, id, "succeeded");
});
