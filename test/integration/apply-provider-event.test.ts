import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createTenant } from "../../src/operations/manage-tenants.js";
import { Gate } from "../support/gate.js";
import { type Harness, startHarness } from "../support/harness.js";
import {
  applyDue,
  attemptRow,
  chargeEvent,
  emptyInbox,
  eventOf,
  inboxOf,
  OPEN_INBOX,
  outcomesOf,
  randomId,
  type Seeded,
  seedPayment,
  storeEvent,
  withProvider,
} from "../support/provider-events.js";

let harness: Harness;
let ours: Seeded;
beforeAll(async () => {
  harness = await startHarness({ workers: [], env: OPEN_INBOX });
});
beforeEach(async () => {
  await emptyInbox(harness);
  ours = await seedPayment(harness);
});
afterAll(() => harness.stop());

async function reviewsOf({ paymentId }: Seeded): Promise<string[]> {
  const rows = await harness.deps.db.sql<{ reason: string }[]>`
    select reason from reviews where payment_id = ${paymentId}`;
  return rows.map((row) => row.reason);
}

/** What no event may write: the payment, its timeline and its outbox. */
async function historyOf({ paymentId }: Seeded): Promise<unknown[]> {
  const { sql } = harness.deps.db;
  return [
    ...(await sql`select status, version, amount_captured, updated_at from payments where id = ${paymentId}`),
    ...(await sql`select id from timeline where payment_id = ${paymentId}`),
    ...(await sql`select id from outbox where payment_id = ${paymentId}`),
  ];
}

const RESTING = { due_in_s: null, nudged: false };
const DUE = { due_in_s: 0, nudged: true };

describe("an event about a charge object of ours", () => {
  test.each([
    "payment_intent.created",
    "payment_intent.processing",
    "payment_intent.requires_action",
    "payment_intent.amount_capturable_updated",
    "payment_intent.payment_failed",
    "payment_intent.succeeded",
    "payment_intent.canceled",
  ])("of type %s makes its attempt due and writes nothing else", async (type) => {
    const before = await historyOf(ours);
    await storeEvent(harness, chargeEvent(ours, type));
    await applyDue(harness.deps);
    expect(await attemptRow(harness, ours)).toMatchObject(DUE);
    expect(await historyOf(ours)).toEqual(before);
    expect(await outcomesOf(harness)).toEqual(["applied: nudged"]);
  });

  test.each<{ readonly name: string; readonly make: () => object }>([
    {
      name: "without a marker",
      make: () => eventOf("payment_intent.succeeded", { id: ours.objectId }),
    },
    {
      name: "of an old version, with a list of charges",
      make: () =>
        chargeEvent(ours, "payment_intent.succeeded", {
          api_version: "2019-05-16",
          data: { object: { id: ours.objectId, metadata: {}, charges: { data: [{ id: "ch_1" }] } } },
        }),
    },
    {
      name: "of a new version, with unknown members and the latest charge alone",
      make: () =>
        eventOf(
          "payment_intent.succeeded",
          { id: ours.objectId, latest_charge: "ch_1", brand_new: { deep: [1] } },
          { api_version: "2031-01-01.later", context: null },
        ),
    },
    {
      name: "told as an event of the charge that paid it",
      make: () => eventOf("charge.succeeded", { id: "ch_1", payment_intent: ours.objectId }),
    },
  ])("$name is as good as any other", async ({ make }) => {
    await storeEvent(harness, make());
    await applyDue(harness.deps);
    expect(await attemptRow(harness, ours)).toMatchObject(DUE);
  });

  test("finds the attempt by its marker while the object's id is not committed", async () => {
    const creating = await seedPayment(harness, { objectId: null, state: "creating" });
    await storeEvent(harness, chargeEvent({ ...creating, objectId: randomId("pi") }));
    await applyDue(harness.deps);
    expect(await attemptRow(harness, creating)).toMatchObject(DUE);
  });

  test("waits under a live lease, and marks the attempt so that it is due when the lease is given back", async () => {
    await harness.deps.db.sql`
      update attempts set lease_owner = 'somebody', lease_expires_at = now() + interval '1 hour',
             due_at = now() + interval '1 hour' where id = ${ours.attemptId}`;
    await storeEvent(harness, chargeEvent(ours));
    await applyDue(harness.deps);
    expect(await attemptRow(harness, ours)).toMatchObject({ due_in_s: 3_600, nudged: true });
  });

  test("brings a later look forward and never puts one off", async () => {
    await harness.deps.db
      .sql`update attempts set due_at = now() + interval '5 minutes' where id = ${ours.attemptId}`;
    await storeEvent(harness, chargeEvent(ours));
    await applyDue(harness.deps);
    expect(await attemptRow(harness, ours)).toMatchObject(DUE);

    await harness.deps.db
      .sql`update attempts set due_at = now() - interval '5 minutes' where id = ${ours.attemptId}`;
    await storeEvent(harness, chargeEvent(ours));
    await applyDue(harness.deps);
    expect(await attemptRow(harness, ours)).toMatchObject({ due_in_s: -300 });
  });
});

describe("an object that carries another's marker", () => {
  test.each<{ readonly name: string; readonly marker: (other: Seeded) => Partial<Seeded> }>([
    { name: "another attempt of the tenant", marker: ({ attemptId }) => ({ attemptId }) },
    {
      name: "another tenant and its attempt",
      marker: ({ tenantId, attemptId }) => ({ tenantId, attemptId }),
    },
    { name: "a tenant that does not exist", marker: () => ({ tenantId: "ten_elsewhere" }) },
  ])("($name) opens one review on the payment that owns it, and touches nothing else", async ({ marker }) => {
    const { id: tenantId } = await createTenant(harness.deps, "other");
    const other = await seedPayment(harness, { tenantId });
    const before = await historyOf(other);
    for (let round = 0; round < 2; round += 1) {
      await storeEvent(harness, chargeEvent({ ...ours, ...marker(other) }));
      await applyDue(harness.deps);
    }
    expect(await reviewsOf(ours)).toEqual(["provider_object_foreign"]);
    expect(await reviewsOf(other)).toEqual([]);
    expect(await attemptRow(harness, ours)).toMatchObject(RESTING);
    expect(await attemptRow(harness, other)).toMatchObject(RESTING);
    expect(await historyOf(other)).toEqual(before);
    const { sql } = harness.deps.db;
    expect(await sql`select kind, reason from timeline where payment_id = ${ours.paymentId}`).toEqual([
      { kind: "fact", reason: "provider_object_foreign" },
    ]);
    expect(await outcomesOf(harness)).toEqual([
      "applied: provider_object_foreign",
      "applied: provider_object_foreign",
    ]);
  });
});

describe("an event of an attempt that is not known yet", () => {
  test("is kept, and applied once the attempt is there", async () => {
    const attemptId = randomId("att");
    await storeEvent(harness, chargeEvent({ ...ours, attemptId, objectId: randomId("pi") }));
    await applyDue(harness.deps);
    expect(await inboxOf(harness)).toMatchObject([
      { state: "pending", tries: 1, outcome: "attempt_not_known" },
    ]);

    const late = await seedPayment(harness, { objectId: null, state: "creating" });
    await harness.deps.db.sql.begin(async (tx) => {
      await tx`update attempts set id = ${attemptId} where id = ${late.attemptId}`;
      await tx`update payments set attempt_id = ${attemptId} where id = ${late.paymentId}`;
      await tx`update provider_events set due_at = now()`;
    });
    await applyDue(harness.deps);
    expect(await attemptRow(harness, { ...late, attemptId })).toMatchObject(DUE);
    expect(await outcomesOf(harness)).toEqual(["applied: nudged"]);
  });
});

test("a test-mode event does not touch a live payment", async () => {
  const live = await seedPayment(harness, { livemode: true });
  await storeEvent(harness, chargeEvent(live));
  const unborn = await seedPayment(harness, { livemode: true, objectId: null });
  await storeEvent(harness, chargeEvent({ ...unborn, objectId: randomId("pi") }));
  await applyDue(harness.deps);
  for (const one of [live, unborn]) expect(await attemptRow(harness, one)).toMatchObject(RESTING);
  expect(await outcomesOf(harness)).toEqual(["applied: other_mode", "applied: other_mode"]);
});

test("an event that was stored under a credential of the other mode waits for a process that has that one", async () => {
  await storeEvent(harness, chargeEvent(ours));
  await applyDue(withProvider(harness.deps, { livemode: true }));
  expect(await inboxOf(harness)).toMatchObject([{ state: "pending", outcome: "other_mode_here" }]);
  expect(await attemptRow(harness, ours)).toMatchObject(RESTING);
});

describe("an attempt whose row is locked", () => {
  test("fails the first try and not the event: it is tried again by itself", async () => {
    const { sql } = harness.deps.db;
    await storeEvent(harness, chargeEvent(ours));
    await sql.begin(async (tx) => {
      await tx`select 1 from attempts where id = ${ours.attemptId} for update`;
      await applyDue(harness.deps);
      expect(await inboxOf(harness)).toMatchObject([{ state: "pending", tries: 1, outcome: "payment_busy" }]);
    });
    const working = await harness.another({ workers: ["provider-events"], env: OPEN_INBOX });
    await expect.poll(() => outcomesOf(harness), { timeout: 10_000 }).toEqual(["applied: nudged"]);
    expect(await attemptRow(harness, ours)).toMatchObject({ nudged: true });
    await working.drain(0);
  });
});

test("a worker that was lost, and comes back late, changes nothing more than the one that took its event over", async () => {
  const { sql } = harness.deps.db;
  await storeEvent(harness, chargeEvent(ours));
  const gate = new Gate("before_event_applied");
  const late = applyDue({ ...harness.deps, probe: gate.probe });
  await gate.reached();
  expect(await attemptRow(harness, ours)).toMatchObject(RESTING);
  await applyDue(harness.deps);
  expect(await inboxOf(harness)).toMatchObject([{ state: "pending", tries: 1 }]);

  await sql`update provider_events set due_at = now()`;
  await applyDue(harness.deps);
  expect(await inboxOf(harness)).toMatchObject([{ state: "applied", tries: 2, due_at: null }]);
  expect(await attemptRow(harness, ours)).toMatchObject(DUE);
  gate.open();
  await late;
  expect(await inboxOf(harness)).toMatchObject([{ state: "applied", tries: 2, due_at: null }]);
});

test("a try that fails late does not undo what another has made of the event", async () => {
  const { sql } = harness.deps.db;
  const attemptId = randomId("att");
  await storeEvent(harness, chargeEvent({ ...ours, attemptId, objectId: randomId("pi") }));
  const gate = new Gate("before_event_applied");
  const late = applyDue({ ...harness.deps, probe: gate.probe });
  await gate.reached();
  await sql`update provider_events set due_at = now(), tries = 19`;
  await applyDue(harness.deps);
  expect(await inboxOf(harness)).toMatchObject([{ state: "parked", tries: 20, due_at: null }]);
  gate.open();
  await late;
  expect(await inboxOf(harness)).toMatchObject([{ state: "parked", tries: 20, due_at: null }]);
});

test("a try that fails late does not put off the one that has taken its event over", async () => {
  const { sql } = harness.deps.db;
  await storeEvent(harness, chargeEvent({ ...ours, attemptId: randomId("att"), objectId: randomId("pi") }));
  const [late, heir] = [new Gate("before_event_ended"), new Gate("before_event_ended")];
  const first = applyDue({ ...harness.deps, probe: late.probe });
  await late.reached();
  await sql`update provider_events set due_at = now()`;
  const second = applyDue({ ...harness.deps, probe: heir.probe });
  await heir.reached();
  const [leased] = await inboxOf(harness);
  late.open();
  await first;
  expect(await inboxOf(harness)).toEqual([leased]);
  heir.open();
  await second;
  expect(await inboxOf(harness)).toMatchObject([
    { state: "pending", tries: 2, outcome: "attempt_not_known" },
  ]);
});
