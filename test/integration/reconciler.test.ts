import { expect, test } from "vitest";
import { documentOf, newKey, pay, untilStatus } from "../support/harness.js";
import { HASTY, useStage } from "../support/stage.js";

const stage = useStage();

test("the reconciler alone takes over what a worker left behind, and leaves fresh attempts to the others", async () => {
  const harness = await stage.start({ env: HASTY, workers: [] });
  const left = documentOf(await pay(harness, { waitMs: 0 })).id;
  const fresh = documentOf(await pay(harness, { waitMs: 0 })).id;
  // As a worker leaves it that claimed the attempt, recorded that it is about to create, and died.
  await harness.deps.db.sql`
    update attempts set state = 'creating', fence = 1, lease_owner = 'dead', lease_expires_at = now(), due_at = now(),
           create_first_sent_at = now() - interval '2 seconds'
     where payment_id = ${left}`;
  const reconciler = await harness.another({ env: HASTY, workers: ["reconciler"] });
  await untilStatus(harness, left, "succeeded");
  const [row] = await harness.deps.db.sql`select state, fence from attempts where payment_id = ${fresh}`;
  expect(row).toMatchObject({ state: "started", fence: "0" });
  const calls = (await harness.sandbox.control.listRequests()).map((request) => request.call);
  expect(calls.filter((call) => call?.startsWith("payment_intents"))).toEqual([
    "payment_intents.list",
    "payment_intents.create",
    "payment_intents.confirm",
  ]);
  await reconciler.startWorkers(["attempts"]);
  await untilStatus(harness, fresh, "succeeded");
  expect(documentOf(await pay(harness, { key: newKey() })).status).toBe("succeeded");
});
