import { describe, expect, test } from "vitest";
import { documentOf, newKey, pay, untilStatus } from "../support/harness.js";
import { freeze, HASTY, onlyObject, useStage, wireOf } from "../support/stage.js";

const stage = useStage();
const CREATE = { call: "payment_intents.create" };
const CONFIRM = { call: "payment_intents.confirm" };
const DAY_MS = 86_400_000;

/** Two ways for the provider to have forgotten a key. */
const WAYS = [
  { way: "on request", byTime: false },
  { way: "because a day has passed on the provider's clock", byTime: true },
];

describe.each(WAYS)("a key that the provider forgot $way", ({ byTime }) => {
  test.each([
    {
      name: "at create, with the object made",
      call: CREATE,
      point: "before_find",
      wire: ["create -", "list 200", "confirm 200"],
    },
    {
      name: "at confirm, with the money moved",
      call: CONFIRM,
      point: "before_get",
      wire: ["create 200", "confirm -", "retrieve 200"],
    },
  ])("$name makes no second one", async ({ call, point, wire }) => {
    const gate = stage.gate(point);
    const harness = await stage.start({ env: HASTY, probe: gate.probe });
    const { control } = harness.sandbox;
    await control.addFault({ match: call, fault: { type: "reset", effect: "applied" } });
    const answer = pay(harness);
    await gate.reached();
    if (byTime) await control.advanceClock(DAY_MS + 1);
    else expect(await control.pruneIdempotencyKeys()).toBeGreaterThan(0);
    gate.open();
    expect(documentOf(await answer).status).toBe("succeeded");
    expect(await wireOf(harness)).toEqual(wire);
    expect((await onlyObject(harness)).successful_charges).toBe(1);
  });

  test("at create, with the first send still on its way, leaves a second object that nobody pays", async () => {
    const harness = await stage.start({ env: HASTY });
    const { control } = harness.sandbox;
    await control.addFault({
      match: CREATE,
      fault: { type: "reset", effect: "later", arrival: "in_network" },
    });
    const answer = await pay(harness);
    if (byTime) await control.advanceClock(DAY_MS + 1);
    else await control.pruneIdempotencyKeys();
    await control.release();
    expect(documentOf(answer).status).toBe("succeeded");
    expect(await control.counts()).toMatchObject({ payment_intents: 2, successful_charges: 1 });
  });
});

test("a confirm whose key may have been forgotten is never sent again: the object is fenced", async () => {
  const gate = stage.gate("before_get");
  const harness = await stage.start({
    env: { ...HASTY, ATTEMPT_RETRY_BUDGET_MS: "20000" },
    probe: gate.probe,
  });
  const { control } = harness.sandbox;
  const key = newKey();
  await control.addFault({ match: CONFIRM, fault: { type: "reset", effect: "none" } });
  const answer = await pay(harness, { key, waitMs: 0 });
  await gate.reached();
  freeze(harness.pawl);
  // Who takes over finds a first send as old as the key's lifetime; the budget alone would allow another.
  await harness.deps.db.sql`
    update attempts set confirm_first_sent_at = confirm_first_sent_at - interval '23 hours'`;
  const other = await harness.another({ env: HASTY });
  const payment = await untilStatus(harness, documentOf(answer).id, "failed");
  expect(payment.failure).toMatchObject({ retry: "same_key" });
  expect(await wireOf(harness)).toEqual([
    "create 200",
    "confirm -",
    "retrieve 200",
    "fence 200",
    "retrieve 200",
  ]);
  gate.open();
  expect(documentOf(await pay(harness, { key, deps: other.deps })).status).toBe("succeeded");
});
