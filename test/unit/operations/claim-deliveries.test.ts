import { describe, expect, test } from "vitest";
import { roomFor } from "../../../src/operations/claim-deliveries.js";

const PLACES = 32;

/** Endpoints that never give a place back, each asking in turn until none gets more. */
function hogs(count: number): number[] {
  const underWay = Array<number>(count).fill(0);
  const free = () => PLACES - underWay.reduce((sum, taken) => sum + taken, 0);
  for (let took = true; took; ) {
    took = false;
    for (let at = 0; at < count && free() > 0; at += 1) {
      if (roomFor(free(), underWay[at] ?? 0) === 0) continue;
      underWay[at] = (underWay[at] ?? 0) + 1;
      took = true;
    }
  }
  return underWay;
}

describe("the places for deliveries", () => {
  test("one endpoint that gives none back takes a quarter of, at once or one by one", () => {
    expect(roomFor(PLACES, 0)).toBe(8);
    expect(hogs(1)).toEqual([8]);
  });

  test.each([2, 4, 8, 16, 28])("%i such endpoints share, and leave one for whoever comes next", (count) => {
    const taken = hogs(count);
    const free = PLACES - taken.reduce((sum, one) => sum + one, 0);
    expect(Math.max(...taken) - Math.min(...taken)).toBeLessThanOrEqual(Math.ceil(PLACES / count));
    expect(Math.min(...taken)).toBeGreaterThanOrEqual(1);
    expect(free).toBeGreaterThanOrEqual(1);
    expect(roomFor(free, 0)).toBeGreaterThanOrEqual(1);
  });

  test("an endpoint that has some under way gets no more when few are free", () => {
    expect([roomFor(6, 2), roomFor(6, 3), roomFor(1, 1)]).toEqual([0, 0, 0]);
    expect([roomFor(32, 2), roomFor(32, 8)]).toEqual([6, 2]);
  });
});
