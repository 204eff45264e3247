import { describe, expect, test } from "vitest";
import { ageWaitMs } from "../../../src/domain/provider-event.js";

describe("the wait of an event whose tries do not count", () => {
  const range = { firstMs: 250, mostMs: 300_000 };

  test.each([
    ["just received", 0, 125, 250],
    ["a second old", 1_000, 250, 500],
    ["a minute old", 60_000, 15_000, 30_000],
    ["ten minutes old", 600_000, 150_000, 300_000],
    ["a month old", 2_592_000_000, 150_000, 300_000],
  ])("%s grows with its age, up to the longest", (_name, ageMs, least, most) => {
    expect(ageWaitMs(range, ageMs, () => 0)).toBe(least);
    expect(ageWaitMs(range, ageMs, () => 1)).toBe(most);
  });

  test("is never nothing, so that no loop can spin", () => {
    expect(ageWaitMs({ firstMs: 1, mostMs: 1 }, 0, () => 0)).toBe(1);
  });
});
