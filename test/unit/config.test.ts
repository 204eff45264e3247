import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ConfigError, isLiveKey, readConfig } from "../../src/config.js";
import { packageRoot } from "../../src/lib/package-root.js";

const SOURCE = readFileSync(join(packageRoot(), "src/config.ts"), "utf8");
/** What timers are set with: a longer one would fire at once, so that a worker would never rest. */
const TIMERS = [...SOURCE.matchAll(/^ {2}([A-Z_]+): durations?\(/gm)].map(([, name]) => name ?? "");
const LONGEST_TIMER_MS = 2_147_483_647;

describe("a setting that a timer is set with", () => {
  it("is one of many", () => {
    expect(TIMERS).toContain("POLL_INTERVAL_MS");
    expect(TIMERS).toContain("WEBHOOK_RETRY_SCHEDULE_MS");
    expect(TIMERS.length).toBeGreaterThan(15);
  });

  it.each(TIMERS)("%s is refused where it is longer than a timer can be", (name) => {
    const read = () => readConfig({ [name]: String(LONGEST_TIMER_MS + 1) });
    expect(read).toThrow(ConfigError);
    expect(read).toThrow(name);
  });

  it("is taken where it is as long", () => {
    const { settings } = readConfig({ POLL_INTERVAL_MS: String(LONGEST_TIMER_MS) });
    expect(settings.pollIntervalMs).toBe(LONGEST_TIMER_MS);
  });

  it("is not what a span of time in the database is: that may be longer", () => {
    const { settings } = readConfig({ UNKNOWN_REVIEW_AFTER_MS: "5184000000" });
    expect(settings.unknownReviewAfterMs).toBe(5_184_000_000);
  });
});

describe("hours", () => {
  it.each([
    ["0.0002777777777777778", 1_000],
    ["0.00000000027777777778", 0.001],
    ["168.5", 606_600_000],
  ])("%s are taken with all their decimals", (hours, ms) => {
    expect(readConfig({ IDEMPOTENCY_RETENTION_HOURS: hours }).settings.retentionMs).toBeCloseTo(ms, 6);
  });

  it.each(["0", "0.0", ".5", "1e3", "-1"])("%s are refused", (hours) => {
    expect(() => readConfig({ IDEMPOTENCY_RETENTION_HOURS: hours })).toThrow("IDEMPOTENCY_RETENTION_HOURS");
  });
});

describe("the mode of a key", () => {
  it.each([
    ["sk_live_1", true],
    ["rk_live_1", true],
    ["sk_test_1", false],
    ["sk_test_a_live_b", false],
  ])("of %s: live is %s, and a fault of our own is staged with no live one", (key, isLive) => {
    expect(isLiveKey(key)).toBe(isLive);
    const read = () => readConfig({ STRIPE_SECRET_KEY: key, PAWL_PROBES: "after_claim=kill" });
    if (isLive) expect(read).toThrow("PAWL_PROBES");
    else expect(read().probes).toBe("after_claim=kill");
  });
});
