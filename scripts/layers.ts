// Runs dependency-cruiser over the layering rules and refuses a run that looked at nothing: with a TypeScript that it
// does not know it finds no module at all and calls that "no violations".
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";

interface Report {
  readonly modules: readonly { readonly source: string }[];
  readonly summary: {
    readonly violations: readonly {
      readonly from: string;
      readonly to: string;
      readonly rule: { readonly name: string; readonly severity: string };
      readonly cycle?: readonly { readonly name: string }[];
    }[];
    readonly totalDependenciesCruised: number;
  };
}

const FOLDERS = ["src", "workers", "test", "bench", "scripts"].filter((folder) => existsSync(folder));
const LAYERS = [
  "src/lib/",
  "src/domain/",
  "src/store/",
  "src/providers/stripe/",
  "src/webhooks/",
  "src/nats/",
  "src/operations/",
  "src/http/",
  "src/sandbox/",
  "src/embedded-postgres/",
  "src/cli/",
  "src/config.ts",
  "src/wire.ts",
  "workers/",
];
const REPORT_MAX_BYTES = 256 * 1024 * 1024;

const run = spawnSync(
  process.execPath,
  [
    "node_modules/dependency-cruiser/bin/dependency-cruise.mjs",
    "--config",
    ".dependency-cruiser.cjs",
    "--output-type",
    "json",
    ...FOLDERS,
  ],
  { encoding: "utf8", maxBuffer: REPORT_MAX_BYTES },
);
if (run.stdout === "") throw new Error(`dependency-cruiser said nothing: ${run.stderr}`);
const report = JSON.parse(run.stdout) as Report;

const faults = report.summary.violations.map((violation) => {
  const path = violation.cycle?.map((step) => step.name).join(" → ") ?? violation.to;
  return `${violation.rule.name}: ${violation.from} → ${path}`;
});
const ours = report.modules.map((module) => module.source);
for (const layer of LAYERS) {
  if (!ours.some((source) => source.startsWith(layer))) faults.push(`no module of ${layer} was looked at`);
}
for (const fault of faults) console.error(fault);
console.log(
  `layers: ${String(report.modules.length)} modules, ${String(report.summary.totalDependenciesCruised)} ` +
    `dependencies, ${String(faults.length)} faults`,
);
process.exitCode = faults.length === 0 ? 0 : 1;
