import { describe, expect, test } from "vitest";
import { documentOf, newKey, pay } from "../support/harness.js";
import { freeze, HASTY, onlyObject, PATIENT, useStage, wireOf } from "../support/stage.js";

const stage = useStage();

/** Where a worker may stand still past its lease, and what it must not do any more when it goes on. */
const PLACES = [
  { point: "before_create" },
  { point: "after_create" },
  { point: "before_confirm" },
  { point: "after_confirm" },
] as const;

describe.each(PLACES)("a worker that stood still at $point past its lease", ({ point }) => {
  test("finds its writes refused and sends nothing more", async () => {
    const gate = stage.gate(point);
    const harness = await stage.start({ env: HASTY, workers: [] });
    const late = await harness.another({ env: HASTY, probe: gate.probe });
    const key = newKey();
    const first = pay(harness, { key });
    await gate.reached();
    freeze(late);
    const other = await harness.another({ env: HASTY });
    expect(documentOf(await first).status).toBe("succeeded");

    const before = await snapshot();
    gate.open();
    await late.drain(0);
    expect(await snapshot()).toEqual(before);
    expect((await onlyObject(harness)).successful_charges).toBe(1);
    const replay = await pay(harness, { key, deps: other.deps });
    expect(documentOf(replay)).toEqual(documentOf(await first));

    /** Everything that a write of the late owner's could touch, and everything that it could send. */
    async function snapshot() {
      const { sql } = other.deps.db;
      return {
        wire: await wireOf(harness),
        attempts: await sql`select * from attempts`,
        payments: await sql`select * from payments`,
        keys: await sql`select * from idempotency_keys`,
        timeline: await sql`select * from timeline order by id`,
        outbox: await sql`select * from outbox order by id`,
      };
    }
  });
});

test("a live lease is not taken, however long the provider takes", async () => {
  const harness = await stage.start();
  const other = await harness.another({ env: PATIENT });
  const { control } = harness.sandbox;
  await control.addFault({
    match: { call: "payment_intents.confirm" },
    fault: { type: "hang", effect: "applied" },
  });
  const answer = pay(harness);
  await control.waitForHeld();
  await harness.deps.db.sql`update attempts set due_at = now() - interval '1 hour'`;
  // Each of these is claimed after the held one, which has been due for longer, was passed over.
  for (const deps of [harness.deps, other.deps]) {
    expect(documentOf(await pay(harness, { deps })).status).toBe("succeeded");
  }
  const fences = await harness.deps.db.sql<{ fence: string }[]>`select fence from attempts`;
  expect(fences.map((row) => Number(row.fence))).toEqual([1, 1, 1]);
  await control.release();
  expect(documentOf(await answer).status).toBe("succeeded");
  expect((await wireOf(harness)).filter((words) => words.startsWith("retrieve"))).toEqual([]);
});

test("a late owner that finds state and version as it left them is refused by the fence alone", async () => {
  const lateGate = stage.gate("after_get");
  const harness = await stage.start({ env: HASTY, workers: [] });
  const { control } = harness.sandbox;
  await control.addFault({
    match: { call: "payment_intents.confirm" },
    fault: { type: "reset", effect: "none" },
  });
  const late = await harness.another({ env: HASTY, probe: lateGate.probe });
  const answer = pay(harness);
  await lateGate.reached();
  freeze(late);
  const gate = stage.gate("before_get");
  await harness.another({ env: HASTY, probe: gate.probe });
  await gate.reached();
  const before = await wireOf(harness);
  // It holds an answer after which it would confirm; whoever took over has only claimed the attempt.
  lateGate.open();
  await late.drain(0);
  expect(await wireOf(harness)).toEqual(before);
  gate.open();
  expect(documentOf(await answer).status).toBe("succeeded");
  expect((await onlyObject(harness)).successful_charges).toBe(1);
});

test("the outcome that the late owner holds is found by who took over, and its payment ends", async () => {
  const gate = stage.gate("after_confirm");
  const harness = await stage.start({ env: HASTY, workers: [] });
  const late = await harness.another({ env: HASTY, probe: gate.probe });
  const answer = pay(harness);
  await gate.reached();
  freeze(late);
  await harness.another({ env: HASTY });
  expect(documentOf(await answer).status).toBe("succeeded");
  expect(await wireOf(harness)).toEqual(["create 200", "confirm 200", "retrieve 200"]);
});
