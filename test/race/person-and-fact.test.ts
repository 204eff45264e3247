import { describe, expect, test } from "vitest";
import { documentOf, type Harness, newKey, pay, untilStatus } from "../support/harness.js";
import {
  IMPATIENT,
  instructionsLeft,
  lastReview,
  resolve,
  type Silent,
  silentProvider,
  untilClosed,
} from "../support/reviews.js";
import { freeze, onlyObject, useStage, wireOf } from "../support/stage.js";

const stage = useStage();

/** A payment in review that no process works on; the provider answers again. */
async function reviewedAtRest(): Promise<{ harness: Harness } & Silent> {
  const harness = await stage.start({ env: IMPATIENT });
  const silent = await silentProvider(harness);
  // To its end: a claim that was under way would ask the provider once more.
  await harness.pawl.drain(0);
  await harness.sandbox.control.clearFaults();
  return { harness, ...silent };
}

async function payAsCustomer(harness: Harness): Promise<void> {
  const { payment_intent: object } = await onlyObject(harness);
  await harness.sandbox.control.confirmAsCustomer(object.id, { payment_method: "pm_card_visa" });
}

async function fenceOf({ deps }: Harness): Promise<number> {
  const [row] = await deps.db.sql<{ fence: string }[]>`select fence from attempts`;
  return Number(row?.fence);
}

describe("a person and a fact", () => {
  test("that a worker holds in its hands when the person decides: the fact is what counts", async () => {
    const { harness, id, review } = await reviewedAtRest();
    await payAsCustomer(harness);
    const gate = stage.gate("after_get");
    await harness.another({ env: IMPATIENT, probe: gate.probe });
    await gate.reached();
    await resolve(harness, review.id, "cancel_at_provider");
    gate.open();
    await untilStatus(harness, id, "succeeded");
    expect(await untilClosed(harness, review.id)).toMatchObject({
      closed_by: "fact",
      resolution: "cancel_at_provider",
    });
    expect(await instructionsLeft(harness)).toBe(0);
    expect((await wireOf(harness)).filter((line) => line.startsWith("fence"))).toEqual([]);
  });

  test("that comes between the person's decision and the provider's cancel: the fact is what counts", async () => {
    const { harness, id, review } = await reviewedAtRest();
    await resolve(harness, review.id, "cancel_at_provider");
    const gate = stage.gate("before_fence");
    await harness.another({ env: IMPATIENT, probe: gate.probe });
    await gate.reached();
    await payAsCustomer(harness);
    gate.open();
    await untilStatus(harness, id, "succeeded");
    expect(await untilClosed(harness, review.id)).toMatchObject({ closed_by: "fact" });
    expect((await wireOf(harness)).slice(-2)).toEqual(["fence 400", "retrieve 200"]);
    expect((await onlyObject(harness)).successful_charges).toBe(1);
  });

  test("that has closed the review leaves the person nothing to decide", async () => {
    const { harness, id, review } = await reviewedAtRest();
    await payAsCustomer(harness);
    await harness.another({ env: IMPATIENT });
    await untilStatus(harness, id, "succeeded");
    await expect(resolve(harness, review.id, "cancel_at_provider")).rejects.toMatchObject({
      code: "review_closed",
      message: expect.stringContaining("closed by a fact") as string,
    });
    expect(await lastReview(harness)).toMatchObject({ resolution: null, closed_by: "fact" });
  });
});

describe("a decision", () => {
  test("is one person's of two at once, and the other is told", async () => {
    const { harness, review } = await reviewedAtRest();
    const other = await harness.another({ env: IMPATIENT, workers: [] });
    const answers = await Promise.allSettled([
      resolve(harness, review.id, "cancel_at_provider"),
      resolve(harness, review.id, "adopt_provider_object", { deps: other.deps }),
    ]);
    const won = answers.filter((answer) => answer.status === "fulfilled");
    expect(won).toHaveLength(1);
    const lost = answers.find((answer) => answer.status === "rejected");
    expect(lost?.reason).toMatchObject({ code: "review_closed" });
    const [answer] = won;
    const body = answer?.value.type === "final" ? answer.value.response.body : "{}";
    const { resolution } = JSON.parse(body) as { resolution: string };
    expect(await lastReview(harness)).toMatchObject({ resolution });
    const requests = await harness.deps.db.sql`select 1 from timeline where kind = 'request'`;
    expect(requests).toHaveLength(1);
    await harness.another({ env: IMPATIENT });
    await untilClosed(harness, review.id);
  });

  test("under one key sent twice at once is one decision, with one answer byte for byte, for ever", async () => {
    const { harness, review } = await reviewedAtRest();
    const key = newKey();
    const twice = await Promise.all([
      resolve(harness, review.id, "cancel_at_provider", { key }),
      resolve(harness, review.id, "cancel_at_provider", { key }),
    ]);
    await harness.another({ env: IMPATIENT });
    await untilClosed(harness, review.id);
    const later = await resolve(harness, review.id, "cancel_at_provider", { key });
    const bodies = [...twice, later].map((answer) => answer.type === "final" && answer.response.body);
    expect(new Set(bodies).size).toBe(1);
    expect([...twice, later].filter((answer) => answer.type === "final" && answer.replayed)).toHaveLength(2);
    expect(
      await harness.deps.db.sql`select 1 from timeline where kind = 'request' and outcome like 'by %'`,
    ).toHaveLength(1);
    await expect(resolve(harness, review.id, "dismiss", { key })).rejects.toMatchObject({
      code: "idempotency_key_reused",
    });
  });

  test("under a live lease waits until that is given back, and is then carried out", async () => {
    const { harness, id, review } = await reviewedAtRest();
    await harness.sandbox.control.addFault({
      match: { call: "payment_intents.retrieve" },
      fault: { type: "error", status: 503 },
    });
    const gate = stage.gate("before_get");
    await harness.another({ env: { ...IMPATIENT, ATTEMPT_LEASE_MS: "15000" }, probe: gate.probe });
    await gate.reached();
    const held = await fenceOf(harness);
    await resolve(harness, review.id, "cancel_at_provider");
    // Another process with nothing else to do: the attempt is not its to take.
    const idle = await harness.another({ env: IMPATIENT, workers: [] });
    await idle.startWorkers(["attempts", "reconciler"]);
    const second = documentOf(await pay(harness, { waitMs: 0 }));
    await untilStatus(harness, second.id, "succeeded");
    const [row] = await harness.deps.db.sql`select fence, nudged from attempts where payment_id = ${id}`;
    expect(row).toMatchObject({ fence: String(held), nudged: true });
    gate.open();
    await untilStatus(harness, id, "failed");
    expect(await untilClosed(harness, review.id)).toMatchObject({ closed_by: "person" });
  });

  test("survives the worker that took it: the next one asks again, and it is carried out once", async () => {
    const { harness, id, review } = await reviewedAtRest();
    await resolve(harness, review.id, "cancel_at_provider");
    const gate = stage.gate("after_fence");
    const first = await harness.another({ env: IMPATIENT, probe: gate.probe });
    await gate.reached();
    freeze(first);
    expect(await instructionsLeft(harness)).toBe(1);
    const before = await fenceOf(harness);
    await harness.another({ env: IMPATIENT });
    await untilStatus(harness, id, "failed");
    expect(await untilClosed(harness, review.id)).toMatchObject({ closed_by: "person" });
    expect(await fenceOf(harness)).toBeGreaterThan(before);
    gate.open();
    await first.drain(0);
    expect((await wireOf(harness)).filter((line) => line.startsWith("fence"))).toEqual(["fence 200"]);
    const closings = await harness.deps.db.sql`select 1 from timeline where reason = 'cancel_at_provider'`;
    // About to cancel, and canceled.
    expect(closings).toHaveLength(2);
    expect(await instructionsLeft(harness)).toBe(0);
  });

  test("by a worker that stood still and comes back late changes nothing", async () => {
    const { harness, id, review } = await reviewedAtRest();
    await resolve(harness, review.id, "cancel_at_provider");
    const gate = stage.gate("after_claim");
    const first = await harness.another({ env: IMPATIENT, probe: gate.probe });
    await gate.reached();
    freeze(first);
    await harness.another({ env: IMPATIENT });
    await untilStatus(harness, id, "failed");
    await untilClosed(harness, review.id);
    const wire = await wireOf(harness);
    gate.open();
    await first.drain(0);
    expect(await wireOf(harness)).toEqual(wire);
    expect(await harness.deps.db.sql`select 1 from reviews`).toHaveLength(1);
  });
});
