import { describe, expect, test } from "vitest";
import { ageWaitMs, backoffMs } from "../../../src/domain/backoff.js";

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

describe("the wait after a failed try", () => {
  const range = { firstMs: 250, mostMs: 300_000 };

  test.each([
    [1, 125, 250],
    [2, 250, 500],
    [5, 2_000, 4_000],
    [11, 128_000, 256_000],
    [12, 150_000, 300_000],
    [1_000, 150_000, 300_000],
  ])("number %i lies between %i and %i ms", (tries, least, most) => {
    expect(backoffMs(range, tries, () => 0)).toBe(least);
    expect(backoffMs(range, tries, () => 1)).toBe(most);
  });

  test("is never nothing, so that no loop can spin", () => {
    expect(backoffMs({ firstMs: 1, mostMs: 1 }, 1, () => 0)).toBe(1);
  });
});
