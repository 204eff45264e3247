import { afterAll, beforeAll, expect, test } from "vitest";
import { documentOf, type Harness, newKey, pay, startHarness } from "../support/harness.js";

let harness: Harness;
beforeAll(async () => {
  harness = await startHarness();
});
afterAll(() => harness.stop());

test("a payment is charged once and its key replays the first answer byte for byte", async () => {
  const { control } = harness.sandbox;
  const key = newKey();
  const before = await control.counts();
  const first = await pay(harness, { key });
  const second = await pay(harness, { key });
  expect(documentOf(first).status).toBe("succeeded");
  expect(second).toMatchObject({ type: "final", replayed: true });
  if (first.type !== "final" || second.type !== "final") throw new Error("not final");
  expect(second.response).toEqual(first.response);
  expect((await control.counts()).successful_charges).toBe(before.successful_charges + 1);
});
