import { test } from "vitest";
import { documentOf, newKey, pay } from "../support/harness.js";
import { HASTY, useStage, wireOf } from "../support/stage.js";
const stage = useStage();
test("debug", async () => {
    const gate = stage.gate("before_create", 0);
    const harness = await stage.start({ env: HASTY, probe: gate.probe });
    const key = newKey();
    const t0 = performance.now();
    const first = pay(harness, { key });
    await gate.reached();
    await harness.another({ env: HASTY });
    console.log("another", performance.now() - t0);
    console.log(documentOf(await first).status, performance.now() - t0);
    console.log(await wireOf(harness), (await harness.sandbox.control.listRequests()).map((r) => r.received_at));
    console.log(await harness.deps.db.sql`select state, fence, create_first_sent_at, created_at from attempts`);
    console.log(await harness.deps.db.sql`select at, kind, reason, outcome, fence from timeline order by id`);
    gate.open();
});
