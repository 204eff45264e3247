import { afterAll, beforeAll, expect, test } from "vitest";
import type { ProviderDispute, ProviderRefund } from "../../src/domain/provider.js";
import { ProviderEventPool } from "../../src/operations/claim-provider-events.js";
import type { Deps } from "../../src/operations/deps.js";
import { type Harness, startHarness } from "../support/harness.js";
import {
  attemptRow,
  chargeEvent,
  emptyInbox,
  eventOf,
  type Inbox,
  inboxOf,
  NO_EVIDENCE,
  OPEN_INBOX,
  openInbox,
  randomId,
  type Seeded,
  type StripeEvent,
  seedPayment,
  withProvider,
} from "../support/provider-events.js";

const ROUNDS = 50;
const AT_ONCE = 6;

let harness: Harness;
let others: readonly Deps[];
let inboxes: readonly Inbox[];
beforeAll(async () => {
  harness = await startHarness({ workers: [], env: OPEN_INBOX });
  const another = await harness.another({ workers: [], env: OPEN_INBOX });
  others = [harness.deps, another.deps];
  inboxes = await Promise.all(others.map(openInbox));
});
afterAll(async () => {
  for (const inbox of inboxes) await inbox.close();
  await harness.stop();
});

/** The same event, released together to both processes, while workers of both are at work. */
async function deliver(event: StripeEvent, prepare: (deps: Deps) => Deps): Promise<void> {
  const pools = others.map((deps) => new ProviderEventPool(prepare(deps), () => undefined));
  const sent = Array.from({ length: AT_ONCE / inboxes.length }, () =>
    inboxes.map((inbox) => inbox.send(event)),
  ).flat();
  const claims = pools.map((pool) => pool.claim());
  const statuses = (await Promise.all(sent)).map((answer) => answer.status);
  expect(statuses).toEqual(Array(AT_ONCE).fill(200));
  await Promise.all(claims);
  await Promise.all(pools.map((pool) => pool.claim()));
  await Promise.all(pools.map((pool) => pool.drain()));
}

test(`one event, delivered ${AT_ONCE} times at once to two processes, is stored and applied once, ${ROUNDS} times over`, async () => {
  for (let round = 0; round < ROUNDS; round += 1) {
    await emptyInbox(harness);
    const seeded = await seedPayment(harness);
    const event = chargeEvent(seeded);
    await deliver(event, (deps) => deps);
    expect(await inboxOf(harness)).toMatchObject([{ event_id: event.id, state: "applied", tries: 1 }]);
    expect(await attemptRow(harness, seeded)).toMatchObject({ nudged: true, fence: "0" });
    // Much later, in a process that has been restarted since.
    expect((await inboxes[1]?.send(event))?.status).toBe(200);
    expect(await inboxOf(harness)).toMatchObject([{ event_id: event.id, state: "applied", tries: 1 }]);
  }
});

async function countsOf({ paymentId }: Seeded): Promise<Record<string, number>> {
  const [row] = await harness.deps.db.sql<Record<string, number>[]>`
    select (select version from payments where id = ${paymentId}) as version,
           (select refund_reserved::int from payments where id = ${paymentId}) as reserved,
           (select count(*)::int from refunds where payment_id = ${paymentId}) as refunds,
           (select count(*)::int from attempts where payment_id = ${paymentId}) as attempts,
           (select count(*)::int from outbox where payment_id = ${paymentId}) as told,
           (select count(*)::int from timeline where payment_id = ${paymentId}) as noted,
           (select count(*)::int from ledger_entries where payment_id = ${paymentId}) as entries`;
  return row ?? {};
}

test("two refunds and a dispute, told together on one payment, are each written once and none is lost", async () => {
  for (let round = 0; round < ROUNDS; round += 1) {
    await emptyInbox(harness);
    const seeded = await seedPayment(harness);
    const refunds = [1_000, 500].map(
      (amount): ProviderRefund => ({
        id: randomId("re"),
        chargeId: seeded.objectId,
        status: "succeeded",
        amount,
        currency: "usd",
        attemptId: null,
        tenantId: null,
        failure: null,
      }),
    );
    const dispute: ProviderDispute = {
      id: randomId("dp"),
      chargeId: seeded.objectId,
      status: "lost",
      amount: 8_500,
      currency: "usd",
      reason: null,
      livemode: false,
      movements: [{ transactionId: "txn_1", amount: -8_500, currency: "usd", fee: 0 }],
    };
    const prepare = (deps: Deps) =>
      withProvider(deps, {
        getRefund: async (id) => {
          const refund = refunds.find((one) => one.id === id);
          if (refund === undefined) throw new Error(`no refund ${id}`);
          return { type: "found", refund, evidence: NO_EVIDENCE };
        },
        getDispute: async () => ({ type: "found", dispute, evidence: NO_EVIDENCE }),
      });
    const events = [
      ...refunds.flatMap(({ id }) =>
        ["refund.created", "refund.updated"].map((type) =>
          eventOf(type, { id, payment_intent: seeded.objectId }),
        ),
      ),
      ...["created", "funds_withdrawn", "closed"].map((type) =>
        eventOf(`charge.dispute.${type}`, { id: dispute.id, payment_intent: seeded.objectId }),
      ),
    ];
    const sent = events.flatMap((event) => inboxes.map((inbox) => inbox.send(event)));
    const pools = others.map((deps) => new ProviderEventPool(prepare(deps), () => undefined));
    for (const answer of await Promise.all(sent)) expect(answer.status).toBe(200);
    for (;;) {
      await Promise.all(pools.map((pool) => pool.claim()));
      await Promise.all(pools.map((pool) => pool.drain()));
      if ((await inboxOf(harness)).every((row) => row.state === "applied")) break;
      await harness.deps.db.sql`update provider_events set due_at = now() where state = 'pending'`;
    }
    expect(await countsOf(seeded)).toEqual({
      version: 4,
      reserved: 1_500,
      refunds: 2,
      attempts: 3,
      told: 5,
      noted: 5,
      entries: 2,
    });
  }
});
