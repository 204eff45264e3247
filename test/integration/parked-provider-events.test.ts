import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createAdminApp } from "../../src/http/admin/admin-app.js";
import { listProviderEvents } from "../../src/operations/list-provider-events.js";
import { purgeProviderEvents } from "../../src/operations/purge-provider-events.js";
import { readBacklog } from "../../src/operations/read-backlog.js";
import { replayAllProviderEvents, replayProviderEvent } from "../../src/operations/replay-provider-event.js";
import { type Harness, startHarness, until } from "../support/harness.js";
import {
  applyDue,
  attemptRow,
  chargeEvent,
  emptyInbox,
  eventOf,
  inboxOf,
  NO_EVIDENCE,
  OPEN_INBOX,
  openInbox,
  randomId,
  seedPayment,
  storeEvent,
  withProvider,
} from "../support/provider-events.js";

/** So few that a test sees the last one. */
const MOST_TRIES = 4;

let harness: Harness;
beforeAll(async () => {
  harness = await startHarness({
    workers: [],
    env: { ...OPEN_INBOX, PROVIDER_EVENT_MOST_TRIES: String(MOST_TRIES), PURGE_BATCH_SIZE: "2" },
  });
});
beforeEach(() => emptyInbox(harness));
afterAll(() => harness.stop());

/** An event whose attempt is not known, so that every try of it fails; and how to make the attempt known. */
async function unknownAttempt() {
  const attemptId = randomId("att");
  const { tenantId } = harness.caller;
  const eventId = await storeEvent(harness, chargeEvent({ tenantId, attemptId, objectId: randomId("pi") }));
  const becomesKnown = async () => {
    const late = await seedPayment(harness, { objectId: null });
    await harness.deps.db.sql.begin(async (tx) => {
      await tx`update attempts set id = ${attemptId} where id = ${late.attemptId}`;
      await tx`update payments set attempt_id = ${attemptId} where id = ${late.paymentId}`;
    });
  };
  return { eventId, attempt: { tenantId, attemptId }, becomesKnown };
}

async function tryNow(times: number): Promise<void> {
  for (let round = 0; round < times; round += 1) {
    await harness.deps.db.sql`update provider_events set due_at = now() where state = 'pending'`;
    await applyDue(harness.deps);
  }
}

describe("an event that fails", () => {
  test("waits longer each time, from 250 ms on, and never longer than 5 minutes", async () => {
    const patient = await harness.another({
      workers: [],
      env: { PROVIDER_EVENT_MOST_TRIES: "20", RETRY_FIRST_MS: "250", RETRY_MOST_MS: "300000" },
    });
    await unknownAttempt();
    const { sql } = harness.deps.db;
    const waits: number[] = [];
    for (let tries = 1; tries <= 13; tries += 1) {
      await sql`update provider_events set due_at = now()`;
      await applyDue(patient.deps);
      const [row] = await sql<{ seconds: number }[]>`
        select extract(epoch from due_at - now())::float8 as seconds from provider_events`;
      waits.push(row?.seconds ?? 0);
    }
    waits.forEach((seconds, index) => {
      const whole = Math.min(0.25 * 2 ** index, 300);
      // The upper half of the whole wait; what the machine took since then is left out.
      expect(seconds).toBeLessThanOrEqual(whole);
      if (whole > 20) expect(seconds).toBeGreaterThan(whole / 2 - 10);
    });
    expect(waits.at(-1)).toBeGreaterThan(140);
  });

  test("for want of an answer is not parked, however long the provider is away, and waits longer each time", async () => {
    const { objectId } = await seedPayment(harness);
    const refund = { id: randomId("re"), object: "refund", payment_intent: objectId };
    await storeEvent(harness, eventOf("refund.updated", refund));
    const silent = { type: "unanswered", reason: "server_error", retryAfterMs: null, evidence: NO_EVIDENCE };
    const getRefund = () => Promise.resolve(silent as never);
    const patient = await harness.another({ workers: [], env: { RETRY_MOST_MS: "300000" } });
    const away = withProvider(patient.deps, { getRefund });
    const { sql } = harness.deps.db;
    const seconds: number[] = [];
    for (const age of [1, 10, 100, 1_000, 10_000]) {
      await sql`update provider_events set due_at = now(), received_at = now() - ${age} * interval '1 second'`;
      await applyDue(away);
      const [row] = await sql<{ seconds: number }[]>`
        select extract(epoch from due_at - now())::float8 as seconds from provider_events`;
      seconds.push(row?.seconds ?? 0);
    }
    const asked = { state: "pending", tries: 0, outcome: "unanswered: server_error" };
    expect(await inboxOf(harness)).toMatchObject([asked]);
    expect(seconds[2]).toBeGreaterThan(15);
    expect(seconds[4]).toBeGreaterThan(140);
    expect(Math.max(...seconds)).toBeLessThanOrEqual(300);
  });

  test("is parked after so many tries and no sooner, is never dropped, and is tried no more", async () => {
    const { eventId } = await unknownAttempt();
    await tryNow(MOST_TRIES - 1);
    expect(await inboxOf(harness)).toMatchObject([{ state: "pending", tries: MOST_TRIES - 1 }]);
    await tryNow(1);
    const parked = { state: "parked", tries: MOST_TRIES, due_at: null, outcome: "attempt_not_known" };
    expect(await inboxOf(harness)).toMatchObject([parked]);
    await tryNow(3);
    expect(await inboxOf(harness)).toMatchObject([{ event_id: eventId, ...parked }]);
  });

  test("is parked where workers die of it, though none could write that down", async () => {
    await unknownAttempt();
    await harness.deps.db.sql`update provider_events set tries = ${MOST_TRIES}`;
    await tryNow(1);
    expect(await inboxOf(harness)).toMatchObject([{ state: "parked", outcome: "tries_did_not_end" }]);
  });

  test("is acknowledged when it is sent again, and stays parked", async () => {
    const attemptId = randomId("att");
    const event = chargeEvent({ tenantId: harness.caller.tenantId, attemptId, objectId: randomId("pi") });
    await storeEvent(harness, event);
    await tryNow(MOST_TRIES);
    const inbox = await openInbox(harness.deps);
    expect((await inbox.send(event)).status).toBe(200);
    await inbox.close();
    expect(await inboxOf(harness)).toMatchObject([{ state: "parked" }]);
  });
});

describe("a parked event", () => {
  test("is tried again when it is replayed, with all its tries before it, and applied", async () => {
    const { eventId, attempt, becomesKnown } = await unknownAttempt();
    await tryNow(MOST_TRIES);
    await becomesKnown();
    expect(await replayProviderEvent(harness.deps, eventId)).toBe(true);
    expect(await inboxOf(harness)).toMatchObject([{ state: "pending", tries: 0 }]);
    await applyDue(harness.deps);
    expect(await inboxOf(harness)).toMatchObject([{ state: "applied", tries: 1 }]);
    expect(await attemptRow(harness, attempt)).toMatchObject({ nudged: true });
    expect(await replayProviderEvent(harness.deps, eventId)).toBe(false);
  });

  test("is the only kind that is replayed", async () => {
    const { eventId } = await unknownAttempt();
    await tryNow(1);
    expect(await replayProviderEvent(harness.deps, eventId)).toBe(false);
    expect(await replayProviderEvent(harness.deps, "evt_nobody")).toBe(false);
    expect(await inboxOf(harness)).toMatchObject([{ state: "pending", tries: 1 }]);
  });

  test("and its like are replayed together where all are meant", async () => {
    for (let count = 0; count < 3; count += 1) await unknownAttempt();
    await tryNow(MOST_TRIES);
    await unknownAttempt();
    expect(await replayAllProviderEvents(harness.deps)).toBe(3);
    expect((await inboxOf(harness)).map((row) => row.state)).toEqual(Array(4).fill("pending"));
  });

  test("is listed, beside what waits or alone, without its payload", async () => {
    const parked = await unknownAttempt();
    await tryNow(MOST_TRIES);
    const waiting = await unknownAttempt();
    await tryNow(1);
    await storeEvent(harness, chargeEvent(await seedPayment(harness)));
    await applyDue(harness.deps);
    const listed = async (parkedOnly: boolean, limit = 10) =>
      (await listProviderEvents(harness.deps, { parkedOnly, limit })).map((event) => event.eventId);
    expect(await listed(true)).toEqual([parked.eventId]);
    expect(await listed(false)).toEqual([parked.eventId, waiting.eventId]);
    expect(await listed(false, 1)).toEqual([parked.eventId]);
    const [shown] = await listProviderEvents(harness.deps, { parkedOnly: true, limit: 1 });
    expect(shown).toMatchObject({
      state: "parked",
      tries: MOST_TRIES,
      outcome: "attempt_not_known",
      dueAt: null,
    });
    expect(shown).not.toHaveProperty("payload");
  });
});

test("the operator sees what waits, what is parked, how long it has waited, and what was done", async () => {
  await unknownAttempt();
  await tryNow(MOST_TRIES);
  await unknownAttempt();
  await harness.deps.db
    .sql`update provider_events set due_at = now() - interval '90 seconds' where state = 'pending'`;
  const backlog = await readBacklog(harness.deps);
  expect(backlog).toMatchObject({ pendingEvents: 1, parkedEvents: 1 });
  expect(backlog.longestOverdueEventSeconds).toBeGreaterThanOrEqual(90);
  const scrape = await (await createAdminApp(harness.deps).request("/metrics")).text();
  expect(scrape).toMatch(/^pawl_provider_events_open\{state="pending"\} 1$/m);
  expect(scrape).toMatch(/^pawl_provider_events_open\{state="parked"\} 1$/m);
  expect(scrape).toMatch(/^pawl_provider_events_overdue_seconds 9\d/m);
  expect(scrape).toMatch(/^pawl_provider_events_total\{step="parked"\} [1-9]\d*$/m);
  expect(scrape).toMatch(/^pawl_provider_events_total\{step="stored"\} [1-9]\d*$/m);
});

describe("the purge", () => {
  test("deletes what was applied before the retention, a batch at a time, and never what is parked or waits", async () => {
    for (let count = 0; count < 5; count += 1)
      await storeEvent(harness, chargeEvent(await seedPayment(harness)));
    await applyDue(harness.deps);
    await unknownAttempt();
    await tryNow(MOST_TRIES);
    await unknownAttempt();
    const { sql } = harness.deps.db;
    await sql`update provider_events set received_at = now() - interval '1 year'`;
    expect(await purgeProviderEvents(harness.deps)).toBe(0);
    await sql`
      update provider_events set applied_at = now() - interval '744 hours' - interval '1 second'
       where event_id in (select event_id from provider_events where state = 'applied' order by event_id limit 3)`;
    expect([await purgeProviderEvents(harness.deps), await purgeProviderEvents(harness.deps)]).toEqual([
      2, 1,
    ]);
    expect(await purgeProviderEvents(harness.deps)).toBe(0);
    expect((await inboxOf(harness)).map((row) => row.state).sort()).toEqual([
      "applied",
      "applied",
      "parked",
      "pending",
    ]);
  });

  test("is the reaper's work, beside that of expired keys", async () => {
    await storeEvent(harness, chargeEvent(await seedPayment(harness)));
    await applyDue(harness.deps);
    await harness.deps.db.sql`update provider_events set applied_at = now() - interval '2 seconds'`;
    const reaping = await harness.another({
      workers: ["reaper"],
      env: { PROVIDER_EVENT_RETENTION_HOURS: "0.0002", PURGE_INTERVAL_MS: "50" },
    });
    await until(
      "an empty inbox",
      () => inboxOf(harness),
      (rows) => rows.length === 0,
    );
    await reaping.drain(0);
  });
});
