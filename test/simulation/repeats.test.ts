import { expect, test } from "vitest";
import { describeReport } from "./describe-report.js";
import { runSeed } from "./run-seed.js";
import { useSimulatedDatabase } from "./seed-suite.js";

const stage = useSimulatedDatabase();

/** One of the usual kind, one in which rows are lost, one with another account's credential and people's decisions. */
const SEEDS = [7, 34, 31];
const TIMEOUT_MS = 120_000;

test(
  "a seed tells the same story again, step by step, also after others",
  async () => {
    const stories = [];
    for (const seed of [...SEEDS, ...SEEDS]) stories.push(await runSeed(seed, { database: stage.database }));
    const first = stories.slice(0, SEEDS.length);
    const again = stories.slice(SEEDS.length);
    expect(again.map(({ story }) => story)).toEqual(first.map(({ story }) => story));
    expect(new Set(stories.map(({ digest }) => digest)).size).toBe(SEEDS.length);
    for (const { story } of first) expect(story.length).toBeGreaterThan(500);
  },
  TIMEOUT_MS,
);

test("the report of a fault names its seed, what the seed drew, and how to run it again", () => {
  const report = describeReport({
    seed: 42,
    faults: ["pi_3 was charged 2 times"],
    setting: '{"payments":9}',
    story: [
      "0.001 provider: payment_intent.created pi_3 (att#2)",
      "0.002 p1 → find att#2",
      "0.003 p1 → get pi_30",
    ],
    digest: "0123456789abcdef",
    counts: { intents: 9 },
  });
  expect(report).toContain("seed 42: 1 faults (intents 9, story 0123456789ab of 3 lines)");
  expect(report).toContain("npm run simulate -- --seed 42");
  expect(report).toContain('setting {"payments":9}');
  const related = report.slice(report.indexOf("what names"), report.indexOf("the last steps"));
  expect(related).toContain("find att#2");
  expect(related).not.toContain("pi_30");
});
