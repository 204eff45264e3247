import { expect, it } from "vitest";
import { BLOWS } from "../chaos/blows.js";
import { describeReport } from "../chaos/describe-report.js";
import { runChaos } from "../chaos/run.js";
import { describeWithFaults } from "../support/e2e-target.js";

const SEED = 20_261_129;
/** Most of it is for a machine that is many times slower. */
const TEST_TIMEOUT_MS = 600_000;

describeWithFaults("real deaths", () => {
  it(
    "of every process, of PostgreSQL and of the provider, under load: nothing lost, nothing doubled",
    async () => {
      const said: string[] = [];
      const report = await runChaos({
        seed: SEED,
        callers: 8,
        between: 8,
        goesOn: (blows) => blows < BLOWS.length,
        say: (line) => said.push(line),
        keepLogs: false,
      });
      const story = `${said.join("\n")}\n${describeReport(report)}`;
      expect(report.faults, story).toEqual([]);
      expect(Object.keys(report.blows).toSorted(), story).toEqual([...BLOWS].toSorted());
      // Nothing is shown by payments that were never made.
      expect(report.payments["succeeded"], story).toBeGreaterThan(BLOWS.length);
      expect(report.effects["refunds succeeded"], story).toBeGreaterThan(0);
    },
    TEST_TIMEOUT_MS,
  );
});
