// `npm test`: the static checks and every vitest project, each run to its end whatever the others found, and a last
// line `N passed, N failed`. A static check counts as one; a test file that failed outside its tests counts as one.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const STATIC_CHECKS = ["typecheck", "lint", "format:check", "layers", "dead", "db:check"];

interface Totals {
  readonly passed: number;
  readonly failed: readonly string[];
  readonly leftOut: readonly string[];
}

interface VitestReport {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

function runScript(script: string): Totals {
  console.log(`\n== ${script}`);
  const run = spawnSync("npm", ["run", "--silent", script], { stdio: "inherit" });
  if (run.status === 0) return { passed: 1, failed: [], leftOut: [] };
  return { passed: 0, failed: [script], leftOut: [] };
}

function totalsOf(report: VitestReport): Totals {
  const namesOf = (statuses: readonly string[]) =>
    report.testResults.flatMap((file) =>
      file.assertionResults.filter((test) => statuses.includes(test.status)).map((test) => test.fullName),
    );
  const brokenFiles = report.testResults
    .filter((file) => file.status === "failed")
    .filter((file) => !file.assertionResults.some((test) => test.status === "failed"))
    .map((file) => file.name);
  return {
    passed: namesOf(["passed"]).length,
    failed: [...namesOf(["failed"]), ...brokenFiles],
    leftOut: namesOf(["pending", "skipped", "todo", "disabled"]),
  };
}

function runVitest(): Totals {
  console.log("\n== tests");
  const folder = mkdtempSync(join(tmpdir(), "pawl-report-"));
  try {
    const reportPath = join(folder, "report.json");
    const run = spawnSync(
      process.execPath,
      [
        "node_modules/vitest/vitest.mjs",
        "run",
        "--reporter=default",
        "--reporter=json",
        `--outputFile.json=${reportPath}`,
      ],
      { stdio: "inherit" },
    );
    const totals = totalsOf(readReport(reportPath));
    // vitest also fails for what belongs to no test: an error that nobody caught, a set-up that broke.
    if (run.status !== 0 && totals.failed.length === 0) {
      return { ...totals, failed: [`vitest (exit ${String(run.status ?? run.signal)})`] };
    }
    return totals;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** No report is a run without tests; the exit code then says why. */
function readReport(path: string): VitestReport {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as VitestReport;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { testResults: [] };
    throw error;
  }
}

function runAll(): Totals[] {
  const build = runScript("build");
  // The process tests run what is in dist: after a failed build that would be yesterday's program.
  if (build.failed.length > 0) return [build];
  return [build, ...STATIC_CHECKS.map(runScript), runVitest()];
}

const totals = runAll();
const passed = totals.reduce((sum, one) => sum + one.passed, 0);
const failed = totals.flatMap((one) => one.failed);
for (const name of totals.flatMap((one) => one.leftOut)) console.log(`left out: ${name}`);
for (const name of failed) console.log(`failed: ${name}`);
console.log(`\n${String(passed)} passed, ${String(failed.length)} failed`);
process.exitCode = failed.length === 0 && passed > 0 ? 0 : 1;
