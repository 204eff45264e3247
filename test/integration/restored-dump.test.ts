import { describe, expect, test } from "vitest";
import { dumpRows, restoreRows } from "../support/dump.js";
import { documentOf, type Harness, newKey, pay, until, untilStatus } from "../support/harness.js";
import { freeze, HASTY, onlyObject, PATIENT, useStage, wireOf } from "../support/stage.js";

const stage = useStage();
const NOTHING = new Map<string, string>();

/** A process that accepts, and one that works until `stop`: so that a state between two steps can be dumped. */
async function acceptOnly(env: Readonly<Record<string, string>> = {}) {
  const harness = await stage.start({ workers: [], env });
  const key = newKey();
  const { id } = documentOf(await pay(harness, { key, waitMs: 0 }));
  return { harness, key, id };
}

async function workUntilPaid(harness: Harness, id: string): Promise<void> {
  const worker = await harness.another({ env: PATIENT });
  await untilStatus(harness, id, "succeeded");
  await worker.drain(0);
}

describe("after a backup from before the payment is restored", () => {
  test("the same key meets the same provider object, and nothing is charged again", async () => {
    const harness = await stage.start();
    const key = newKey();
    const input = { merchant_order_id: "order-1" };
    const first = documentOf(await pay(harness, { key, input }));
    await restoreRows(harness, NOTHING);
    await harness.sandbox.control.clearRequests();
    const second = documentOf(await pay(harness, { key, input }));
    expect(second.id).not.toBe(first.id);
    expect(second["provider_payment_id"]).toBe(first["provider_payment_id"]);
    expect(await wireOf(harness)).toEqual(["create 200 replayed", "retrieve 200"]);
    expect((await onlyObject(harness)).successful_charges).toBe(1);
  });

  test("the same key with another request is not charged for it: a person must look", async () => {
    const harness = await stage.start();
    const key = newKey();
    await pay(harness, { key });
    await restoreRows(harness, NOTHING);
    await harness.sandbox.control.clearRequests();
    const second = await pay(harness, { key, input: { amount: 4300 } });
    expect(documentOf(second).status).toBe("needs_review");
    expect(await wireOf(harness)).toEqual(expect.arrayContaining(["create 400", "list 200"]));
    expect((await onlyObject(harness)).successful_charges).toBe(1);
  });

  test("the same key of a declined payment charges nothing that was closed", async () => {
    const harness = await stage.start();
    const key = newKey();
    const input = { payment_method: "pm_card_visa_chargeDeclined" };
    await pay(harness, { key, input });
    await harness.sandbox.control.waitForRequests({
      filter: { call: "payment_intents.retrieve" },
      until: "settled",
    });
    await expect
      .poll(async () => (await harness.deps.db.sql`select 1 from attempts where state <> 'completed'`).length)
      .toBe(0);
    await restoreRows(harness, NOTHING);
    await harness.sandbox.control.clearRequests();
    await expect(pay(harness, { key, input })).rejects.toMatchObject({ code: "provider_unavailable" });
    expect((await onlyObject(harness)).successful_charges).toBe(0);
  });
});

describe("after a backup in which the attempt had only started is restored", () => {
  test("within the budget, the create is replayed and the object looked at", async () => {
    const { harness, key, id } = await acceptOnly();
    const dump = await dumpRows(harness);
    await workUntilPaid(harness, id);
    await restoreRows(harness, dump);
    await harness.sandbox.control.clearRequests();
    await workUntilPaid(harness, id);
    expect(await wireOf(harness)).toEqual(["create 200 replayed", "retrieve 200"]);
    expect((await onlyObject(harness)).successful_charges).toBe(1);
    expect(await pay(harness, { key })).toMatchObject({ type: "final", replayed: true });
  });

  test.each(["1 hour", "23 hours", "9 days"])(
    "%s later, it is asked about before anything is sent",
    async (age) => {
      const { harness, id } = await acceptOnly();
      await harness.deps.db.sql`update attempts set created_at = created_at - ${age}::interval`;
      const dump = await dumpRows(harness);
      await harness.deps.db.sql`update attempts set created_at = now()`;
      await workUntilPaid(harness, id);
      await restoreRows(harness, dump);
      const { control } = harness.sandbox;
      await control.pruneIdempotencyKeys();
      await control.clearRequests();
      await workUntilPaid(harness, id);
      expect(await wireOf(harness)).toEqual(["list 200"]);
      expect((await onlyObject(harness)).successful_charges).toBe(1);
    },
  );

  test.each(["1 hour", "22 hours"])(
    "%s later, with the provider unreachable, its row alone proves nothing",
    async (age) => {
      const { harness, key, id } = await acceptOnly();
      await harness.deps.db.sql`update attempts set created_at = created_at - ${age}::interval`;
      const dump = await dumpRows(harness);
      await harness.deps.db.sql`update attempts set created_at = now()`;
      await workUntilPaid(harness, id);
      await restoreRows(harness, dump);
      const { control } = harness.sandbox;
      await control.closeListener();
      await harness.another({ env: PATIENT });
      await until(
        "an attempt that was looked at",
        () => harness.deps.db.sql`select 1 from attempts where fence > 0 and lease_expires_at is null`,
        (rows) => rows.length === 1,
      );
      await expect(pay(harness, { key, waitMs: 0 })).rejects.toMatchObject({
        code: "idempotency_key_in_progress",
      });
      await control.clearRequests();
      await control.openListener();
      await untilStatus(harness, id, "succeeded");
      expect((await onlyObject(harness)).successful_charges).toBe(1);
    },
  );

  test("nine days later, with the provider silent, nothing is sent and nothing is called without effect", async () => {
    const { harness, id } = await acceptOnly(HASTY);
    await harness.deps.db.sql`update attempts set created_at = created_at - interval '9 days'`;
    const dump = await dumpRows(harness);
    await harness.deps.db.sql`update attempts set created_at = now()`;
    await workUntilPaid(harness, id);
    await restoreRows(harness, dump);
    const { control } = harness.sandbox;
    await control.pruneIdempotencyKeys();
    await control.clearRequests();
    const list = { call: "payment_intents.list" };
    await control.addFault({ match: list, times: 3, fault: { type: "error", status: 500 } });
    await workUntilPaid(harness, id);
    expect(await wireOf(harness)).toEqual(["list 500", "list 500", "list 500", "list 200"]);
  });
});

describe("after a backup in which the object was known and not confirmed is restored", () => {
  async function dumpBeforeConfirm() {
    const gate = stage.gate("before_confirm");
    const harness = await stage.start({ probe: gate.probe, env: HASTY });
    const { id } = documentOf(await pay(harness, { waitMs: 0 }));
    await gate.reached();
    freeze(harness.pawl);
    await harness.deps.db
      .sql`update attempts set state = 'charge_created', lease_expires_at = null, due_at = now()`;
    return { gate, harness, id, dump: await dumpRows(harness) };
  }

  test("within the budget, the confirm is replayed and the object looked at", async () => {
    const { gate, harness, id, dump } = await dumpBeforeConfirm();
    await workUntilPaid(harness, id);
    gate.open();
    await harness.pawl.drain(0);
    await restoreRows(harness, dump);
    await harness.sandbox.control.clearRequests();
    await workUntilPaid(harness, id);
    expect(await wireOf(harness)).toEqual(["confirm 200 replayed", "retrieve 200"]);
    expect((await onlyObject(harness)).successful_charges).toBe(1);
  });

  test("two days later, the object is asked about and adopted as paid", async () => {
    const { gate, harness, id, dump } = await dumpBeforeConfirm();
    await workUntilPaid(harness, id);
    gate.open();
    await harness.pawl.drain(0);
    await restoreRows(harness, dump);
    await harness.deps.db.sql`update attempts set created_at = created_at - interval '2 days'`;
    await harness.sandbox.control.advanceClock(2 * 86_400_000);
    await harness.sandbox.control.clearRequests();
    await workUntilPaid(harness, id);
    expect(await wireOf(harness)).toEqual(["retrieve 200"]);
  });
});
