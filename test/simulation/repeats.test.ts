import { expect, test } from "vitest";
import { describeReport } from "./describe-report.js";
import { runSeed } from "./run-seed.js";
import { useSimulatedDatabase } from "./seed-suite.js";

const stage = useSimulatedDatabase();

test("a seed tells the same story again, step by step, also after another one", async () => {
  const first = await runSeed(7, { database: stage.database });
  const other = await runSeed(8, { database: stage.database });
  const again = await runSeed(7, { database: stage.database });
  expect(again.story).toEqual(first.story);
  expect(other.digest).not.toBe(first.digest);
  expect(first.story.length).toBeGreaterThan(500);
});

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
