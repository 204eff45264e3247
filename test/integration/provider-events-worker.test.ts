import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Gate } from "../support/gate.js";
import { type Harness, startHarness, until } from "../support/harness.js";
import {
  attemptRow,
  chargeEvent,
  type Inbox,
  inboxOf,
  OPEN_INBOX,
  openInbox,
  seedPayment,
} from "../support/provider-events.js";

/** Longer than any test lasts: what happens sooner was announced. */
const NEVER_POLLED = { ...OPEN_INBOX, PROVIDER_EVENT_INTERVAL_MS: "600000" };

let harness: Harness;
let inbox: Inbox;
beforeEach(async () => {
  harness = await startHarness({ workers: [], env: NEVER_POLLED });
  inbox = await openInbox(harness.deps);
});
afterEach(async () => {
  await inbox.close();
  await harness.stop();
});

const allApplied = () =>
  until(
    "every event applied",
    () => inboxOf(harness),
    (rows) => rows.every((row) => row.state === "applied"),
  );

describe("the worker", () => {
  test("of the process that stored an event takes it up at once", async () => {
    const both = await harness.another({ workers: ["provider-events"], env: NEVER_POLLED });
    const own = await openInbox(both.deps);
    const seeded = await seedPayment(harness);
    expect((await own.send(chargeEvent(seeded))).status).toBe(200);
    await allApplied();
    expect(await attemptRow(harness, seeded)).toMatchObject({ nudged: true });
    await own.close();
  });

  test("of another process is told of it", async () => {
    await harness.another({ workers: ["provider-events"], env: NEVER_POLLED });
    const seeded = await seedPayment(harness);
    expect((await inbox.send(chargeEvent(seeded))).status).toBe(200);
    await allApplied();
  });

  test("finds by itself what nobody announced, and what became due again", async () => {
    const seeded = await seedPayment(harness);
    expect((await inbox.send(chargeEvent(seeded))).status).toBe(200);
    await harness.another({ workers: ["provider-events"], env: OPEN_INBOX });
    await allApplied();
  });

  test("goes on with the others while some hang, takes no more than it has room for, and the rest as soon as there is room", async () => {
    const gate = new Gate("before_event_applied");
    await harness.another({ workers: ["provider-events"], env: NEVER_POLLED, probe: gate.probe });
    const seeded = await Promise.all(Array.from({ length: 40 }, () => seedPayment(harness)));
    await Promise.all(seeded.map((one) => inbox.send(chargeEvent(one))));
    await until(
      "a full pool",
      async () => gate.arrivals,
      (arrivals) => arrivals === 32,
    );
    expect((await inboxOf(harness)).filter((row) => row.tries > 0)).toHaveLength(32);
    gate.open();
    await allApplied();
    for (const one of seeded) expect(await attemptRow(harness, one)).toMatchObject({ nudged: true });
  });

  test("that stops lets what is under way come to its end", async () => {
    const gate = new Gate("before_event_applied");
    const stopping = await harness.another({
      workers: ["provider-events"],
      env: OPEN_INBOX,
      probe: gate.probe,
    });
    await inbox.send(chargeEvent(await seedPayment(harness)));
    await gate.reached();
    let drained = false;
    const end = stopping.drain(0).then(() => {
      drained = true;
    });
    await inbox.send(chargeEvent(await seedPayment(harness)));
    expect(drained).toBe(false);
    gate.open();
    await end;
    expect((await inboxOf(harness)).map((row) => row.state)).toEqual(["applied", "pending"]);
  });
});
