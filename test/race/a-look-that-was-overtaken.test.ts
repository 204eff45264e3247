import { expect, test } from "vitest";
import { documentOf, pay, until, untilStatus } from "../support/harness.js";
import { useStage, wireOf } from "../support/stage.js";

const stage = useStage();

test("a look is put once more where the payment was written while it was under way: its answer may be older", async () => {
  const harness = await stage.start({ workers: [] });
  const { sql } = harness.deps.db;
  const paying = await harness.another({ workers: ["attempts"] });
  const input = { capture_method: "manual" } as const;
  const { id } = documentOf(await pay(harness, { input }));
  await untilStatus(harness, id, "authorized");
  await paying.drain(0);
  await harness.sandbox.control.clearRequests();
  const gate = stage.gate("after_get");
  await sql`update attempts set due_at = now() where payment_id = ${id}`;
  await harness.another({ workers: ["attempts"], probe: gate.probe });
  await gate.reached();
  await sql`update payments set version = version + 1 where id = ${id}`;
  gate.open();
  await until(
    "an attempt that is given back",
    () => sql`select 1 from attempts where lease_expires_at is null and payment_id = ${id}`,
    (rows) => rows.length === 1,
  );
  expect(await wireOf(harness)).toEqual(["retrieve 200", "retrieve 200"]);
});
