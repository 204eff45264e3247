import { expect, test } from "vitest";
import { OutcomeHub } from "../../../src/operations/await-outcome.js";

const LONG_MS = 60_000;
const elsewhere = { type: "elsewhere" } as const;
const forever = new AbortController().signal;

test("all who wait for an attempt here are woken by its outcome, and nobody else is told", async () => {
  const told: string[] = [];
  const hub = new OutcomeHub((attemptId) => told.push(attemptId));
  const waiting = [
    hub.wait("ten_1", "att_1", LONG_MS, forever),
    hub.wait("ten_1", "att_1", LONG_MS, forever),
  ];
  hub.settle("att_1", elsewhere);
  expect(await Promise.all(waiting)).toEqual([elsewhere, elsewhere]);
  expect(told).toEqual([]);
});

test("an outcome that nobody here waits for is told to the other processes", () => {
  const told: string[] = [];
  new OutcomeHub((attemptId) => told.push(attemptId)).settle("att_1", elsewhere);
  expect(told).toEqual(["att_1"]);
});

test("a caller that has gone, a wait of nothing, and a release all end the waiting without an outcome", async () => {
  const hub = new OutcomeHub(() => undefined);
  const client = new AbortController();
  const gone = hub.wait("ten_1", "att_1", LONG_MS, client.signal);
  client.abort();
  expect(await gone).toBeNull();
  expect(await hub.wait("ten_1", "att_1", 0, forever)).toBeNull();
  expect(await hub.wait("ten_1", "att_1", 1, forever)).toBeNull();
  const stopped = hub.wait("ten_1", "att_1", LONG_MS, forever);
  hub.releaseAll();
  expect(await stopped).toBeNull();
});

test("what is waited for is known, each attempt once, and forgotten when the waiting ends", async () => {
  const hub = new OutcomeHub(() => undefined);
  const waiting = [
    hub.wait("ten_1", "att_1", LONG_MS, forever),
    hub.wait("ten_1", "att_1", LONG_MS, forever),
  ];
  expect(hub.waitedFor()).toEqual([{ tenantId: "ten_1", attemptId: "att_1" }]);
  hub.releaseAll();
  await Promise.all(waiting);
  expect(hub.waitedFor()).toEqual([]);
});
