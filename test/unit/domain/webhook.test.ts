import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readConfig } from "../../../src/config.js";
import { EVENT_TYPES, eventDocument } from "../../../src/domain/events.js";
import { DELIVERY_FAULTS, waitAfter, waitForBroker } from "../../../src/domain/webhook.js";
import { packageRoot } from "../../../src/lib/package-root.js";

const { webhookRetryScheduleMs: SCHEDULE } = readConfig({}).settings;

describe("the wait before the next try", () => {
  test("is the schedule's, and none after its end", () => {
    expect(SCHEDULE.map((_, at) => waitAfter(SCHEDULE, at + 1, 0))).toEqual(SCHEDULE);
    expect(waitAfter(SCHEDULE, SCHEDULE.length + 1, 0)).toBeNull();
    expect(waitAfter([], 1, 0)).toBeNull();
  });

  test("is up to a tenth longer by chance, never shorter", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: SCHEDULE.length }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (tries, chance) => {
          const wait = waitAfter(SCHEDULE, tries, chance) ?? 0;
          const scheduled = SCHEDULE[tries - 1] ?? 0;
          expect(wait).toBeGreaterThanOrEqual(scheduled);
          expect(wait).toBeLessThanOrEqual(Math.round(scheduled * 1.1));
        },
      ),
    );
    expect(waitAfter([1_000], 1, 1)).toBe(1_100);
  });

  test("of the broker never ends, and is never longer than its bound", () => {
    expect([1, 2, 3, 9, 10, 1_000].map((tries) => waitForBroker(SCHEDULE, tries, 0, 300_000))).toEqual([
      5_000, 300_000, 300_000, 300_000, 300_000, 300_000,
    ]);
  });
});

test("an event's document is the same text each time it is made", () => {
  const event = {
    tenantId: "ten_1",
    id: "evt_1",
    type: "payment.succeeded",
    object: { object: "payment", amount: 999_999_999_999, metadata: { b: "ž", 7: "x" } },
    createdAt: new Date("2026-03-04T05:06:07.890Z"),
  };
  const text = JSON.stringify(eventDocument(event));
  expect(
    JSON.stringify(
      eventDocument(
        JSON.parse(JSON.stringify(event), (name, value: unknown) =>
          name === "createdAt" ? new Date(value as string) : value,
        ) as typeof event,
      ),
    ),
  ).toBe(text);
  expect(text).toBe(
    '{"id":"evt_1","object":"event","type":"payment.succeeded","created_at":"2026-03-04T05:06:07.890Z","data":{"object":{"object":"payment","amount":999999999999,"metadata":{"7":"x","b":"ž"}}}}',
  );
});

describe("docs/webhooks.md", () => {
  const page = readFileSync(join(packageRoot(), "docs/webhooks.md"), "utf8");

  test("publishes the schedule that is the default", () => {
    const units: Readonly<Record<string, number>> = { s: 1_000, min: 60_000, h: 3_600_000 };
    const cells = /^\| wait \|(.*)\|$/m.exec(page)?.[1]?.split("|") ?? [];
    const published = cells.map((cell) => {
      const [, amount, unit = ""] = /^(\d+) (s|min|h)$/.exec(cell.trim()) ?? [];
      return Number(amount) * (units[unit] ?? Number.NaN);
    });
    expect(published).toEqual(SCHEDULE);
  });

  test.each([...EVENT_TYPES, ...DELIVERY_FAULTS])("names %s", (name) => {
    expect(page).toContain(`\`${name}\``);
  });
});
