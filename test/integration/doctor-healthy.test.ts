import { describe, expect, test } from "vitest";
import { Comparison } from "../../src/operations/reconcile.js";
import { beginRecoverySince } from "../../src/operations/recover.js";
import { settled, useConnected } from "../support/connected.js";
import { brokenLately, everythingBroken, livesOf } from "../support/doctor.js";
import { paid } from "../support/effects.js";
import { documentOf, pay, startHarness, until, untilStatus } from "../support/harness.js";
import { COMPARING, loseRows } from "../support/reconciliation.js";
import { CROWDED, useStage } from "../support/stage.js";

const stage = useStage();
const connected = useConnected(stage);
const CLIENTS = 6;
const HOUR_MS = 3_600_000;

async function objectOf(harness: Parameters<typeof pay>[0], paymentId: string): Promise<string> {
  const [row] = await harness.deps.db.sql<{ provider_payment_id: string }[]>`
    select provider_payment_id from attempts where payment_id = ${paymentId} and kind = 'charge'`;
  return row?.provider_payment_id ?? "";
}

describe("the doctor finds nothing", () => {
  test("in payments of every kind, also where money moved outside and answers were lost", async () => {
    const wired = await connected();
    const { harness } = wired;
    const { control } = harness.sandbox;
    const lives = await livesOf(harness, "one");
    expect(await everythingBroken(harness.deps)).toEqual([]);

    for (const effect of ["applied", "none"] as const) {
      await control.addFault({
        match: { call: "payment_intents.confirm" },
        fault: { type: "reset", effect },
      });
      expect(documentOf(await pay(harness)).status).toBe("succeeded");
    }
    const disputed = await paid(harness);
    const lost = await control.bank.openDispute(await objectOf(harness, disputed));
    await settled(wired);
    await control.bank.closeDispute(lost.id, "lost");
    await control.dashboard.refund(await objectOf(harness, lives.sale), 700);
    await control.dashboard.cancel(await objectOf(harness, lives.held));
    await control.authenticate(await objectOf(harness, lives.action), "complete");
    await untilStatus(harness, lives.action, "succeeded");
    await settled(wired);
    await untilStatus(harness, lives.held, "canceled");
    expect(await everythingBroken(harness.deps)).toEqual([]);
    expect(await brokenLately(harness.deps)).toEqual([]);
  });

  test("in rows that were lost and recovered from the provider", async () => {
    const harness = await startHarness({ env: COMPARING });
    try {
      const { deps } = harness;
      const lives = await livesOf(harness, "lost");
      await loseRows(harness, [
        lives.sale,
        lives.refunded,
        lives.held,
        lives.captured,
        lives.partly,
        lives.action,
      ]);
      await deps.db.sql`delete from idempotency_keys where operation = 'refunds.create'`;
      const comparison = new Comparison(deps);
      const account = await comparison.accountOrThrow();
      const run = await beginRecoverySince(deps, account, new Date(Date.now() - HOUR_MS));
      await comparison.drive(run);
      await until(
        "every recovered payment with its refunds",
        () => deps.db.sql<{ status: string; refunded: string }[]>`
          select status, amount_refunded as refunded from payments where status <> 'processing'`,
        (rows) => rows.length === 8 && rows.filter(({ refunded }) => refunded !== "0").length === 2,
      );
      expect(await everythingBroken(deps)).toEqual([]);
    } finally {
      await harness.stop();
    }
  });

  test("while payments are made, captured and refunded, whenever it looks", async () => {
    const env = { ...CROWDED, WORKER_CONCURRENCY: "16" };
    const harness = await stage.start({ env });
    const doctor = await harness.another({ env, workers: [] });
    let left = CLIENTS;
    const clients = Array.from({ length: CLIENTS }, async (_, at) => {
      await livesOf(harness, `client-${at}-first`);
      await livesOf(harness, `client-${at}-second`);
      left -= 1;
    });
    let looks = 0;
    do {
      expect(await (looks % 2 === 0 ? everythingBroken : brokenLately)(doctor.deps)).toEqual([]);
      looks += 1;
    } while (left > 0);
    await Promise.all(clients);
    expect(looks).toBeGreaterThan(2);
    await until(
      "nothing under way",
      () => harness.deps.db.sql`select id from attempts where due_at is not null and state <> 'following'`,
      (rows) => rows.length === 0,
    );
    expect(await everythingBroken(doctor.deps)).toEqual([]);
  });
});
