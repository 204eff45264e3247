import { expect, test } from "vitest";
import { describeReport } from "./describe-report.js";
import { runSeed } from "./run-seed.js";
import { useSimulatedDatabase } from "./seed-suite.js";
import { Sums } from "./sums.js";

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

test(
  "a seed that is asked for many payments makes them, and all of them come to their end",
  async () => {
    const report = await runSeed(7, { database: stage.database, payments: 40 });
    expect(report.faults).toEqual([]);
    // A few are refused before anything is made for them.
    expect(report.counts["intents"]).toBeGreaterThan(30);
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
    payments: 9,
  });
  expect(report).toContain("seed 42: 1 faults (intents 9, story 0123456789ab of 3 lines)");
  expect(report).toContain("npm run simulate -- --seed 42 --payments 9");
  expect(report).toContain('setting {"payments":9}');
  const related = report.slice(report.indexOf("what names"), report.indexOf("the last steps"));
  expect(related).toContain("find att#2");
  expect(related).not.toContain("pi_30");
});

test("the last steps of a fault's report are at most 40, and none of them a bare read", () => {
  const reads = Array.from({ length: 60 }, (_, at) => `${at}.000 p7 db readKey`);
  const steps = Array.from({ length: 50 }, (_, at) => `${at}.500 p7 db advanceAttempts`);
  const story = [...steps, "60.000 p7 db readKey (cut_before)", "61.000 client c1 hears: 409", ...reads];
  const report = describeReport({
    seed: 1,
    faults: ["a fault"],
    setting: "{}",
    story,
    digest: "0",
    counts: {},
  });
  const [, shown = ""] = report.split("the last steps:\n");
  const lines = shown.split("\n").slice(0, -1);
  expect(lines).toHaveLength(40);
  expect(lines.slice(-2).map((line) => line.trim())).toEqual([
    "60.000 p7 db readKey (cut_before)",
    "61.000 client c1 hears: 409",
  ]);
  expect(shown).not.toMatch(/readKey$/m);
});

test("the sums over seeds tell how much was simulated, and count no command's own end as a death", () => {
  const sums = new Sums();
  sums.add({
    counts: { intents: 2, refunds: 1 },
    story: [
      "0.001 p1 dies before advanceAttempts",
      "0.002 operator3 dies at the end of pawl recover",
      "0.003 p2 db advanceAttempts (cut_after)",
      "0.004 p2 db readKey",
      "0.005 https://ten_1.example gets evt#1",
      "0.006 https://ten_1.example gets evt#1 (lost)",
    ],
  });
  sums.add({ counts: { intents: 3, refunds: 0 }, story: ["0.001 p1 dies with all others"] });
  expect(String(sums)).toBe("intents 5, refunds 1, process deaths 2, database cuts 1, events 1");
});
