import { SUBJECT_KINDS, type SubjectKind } from "../src/domain/doctor.js";
import { ROUND } from "../src/operations/doctor.js";
import { PAGE_SIZE } from "../src/operations/doctor-examination.js";
import type { PlanFigures } from "../test/support/plan-figures.js";

const HOUR_MS = 3_600_000;

export interface Cost {
  readonly ms: number;
  readonly cpuMs: number;
}

/** What was measured beside so many payments. */
export interface Measured {
  readonly payments: number;
  readonly gigabytes: number;
  /** The first round found nothing in the system's memory, either. */
  readonly isCold: boolean;
  readonly first: Cost & { readonly payments: number };
  readonly rounds: { readonly costs: readonly Cost[]; readonly payments: number };
  readonly plans: ReadonlyMap<string, PlanFigures>;
  readonly walk: Readonly<
    Record<SubjectKind, { readonly rows: number; readonly pageMs: number; readonly pageCpuMs: number }>
  >;
  readonly whole: (Cost & { readonly rows: number }) | null;
  readonly found: readonly string[];
}

const median = (values: readonly number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

export function report(measured: readonly Measured[], rounds: number): void {
  const line = (name: string, value: (one: Measured) => string) => [name, ...measured.map(value)];
  const isCold = measured.every((one) => one.isCold);
  print([
    line("payments", ({ payments }) => payments.toLocaleString("en")),
    line("database, GB", ({ gigabytes }) => gigabytes.toFixed(1)),
    line(`first round, ${isCold ? "nothing in memory" : "the server started anew"}, ms`, ({ first }) =>
      first.ms.toFixed(0),
    ),
    line("  CPU, ms", ({ first }) => first.cpuMs.toFixed(0)),
    line("  payments looked at (15 minutes and what is open)", ({ first }) => `${first.payments}`),
    line(`a minute's round, median of ${rounds}, ms`, (one) =>
      median(one.rounds.costs.map(({ ms }) => ms)).toFixed(0),
    ),
    line("  slowest, ms", (one) => Math.max(...one.rounds.costs.map(({ ms }) => ms)).toFixed(0)),
    line("  CPU, median, ms", (one) => median(one.rounds.costs.map(({ cpuMs }) => cpuMs)).toFixed(0)),
    line("  payments looked at (two minutes and what is open)", (one) => `${one.rounds.payments}`),
    line("all statements once: rows read", (one) => total(one, "rows")),
    line("all statements once: blocks touched", (one) => total(one, "blocks")),
    line(
      "big tables scanned whole",
      ({ plans }) => [...plans.values()].flatMap(({ scans }) => scans).join() || "none",
    ),
    ...SUBJECT_KINDS.map((kind) =>
      line(`walk: ${PAGE_SIZE} rows (${kind}), ms / CPU ms`, ({ walk }) => {
        const { pageMs, pageCpuMs } = walk[kind];
        return `${pageMs.toFixed(1)} / ${pageCpuMs.toFixed(1)}`;
      }),
    ),
    line("walk: rows of all tables", (one) => rowsOf(one).toLocaleString("en")),
    line("walk: hours of CPU for all of them", (one) => (sumOfPages(one, "pageCpuMs") / HOUR_MS).toFixed(2)),
    line("walk: rows a second of work", (one) =>
      Math.round((rowsOf(one) / workMs(one)) * 1_000).toLocaleString("en"),
    ),
    line(`walk: hours until all is seen, at 1/${1 / ROUND.patrol.share} of the time`, (one) =>
      (workMs(one) / HOUR_MS / ROUND.patrol.share).toFixed(1),
    ),
    line("walk: rows a second of CPU", (one) =>
      Math.round((rowsOf(one) / sumOfPages(one, "pageCpuMs")) * 1_000).toLocaleString("en"),
    ),
    line("  where all were really looked through", ({ whole }) =>
      whole === null ? "-" : Math.round((whole.rows / whole.cpuMs) * 1_000).toLocaleString("en"),
    ),
    line("found, of two rows that were then broken", ({ found }) => `${found.length}`),
  ]);
  process.stdout.write("\nOne page of each statement: rows read / blocks touched / ms\n");
  const names = [...(measured[0]?.plans.keys() ?? [])];
  print(names.map((name) => line(name, ({ plans }) => figuresOf(plans.get(name)))));
}

function rowsOf({ walk }: Measured): number {
  return SUBJECT_KINDS.reduce((sum, kind) => sum + walk[kind].rows, 0);
}

function workMs(one: Measured): number {
  return sumOfPages(one, "pageMs");
}

function sumOfPages({ walk }: Measured, what: "pageMs" | "pageCpuMs"): number {
  return SUBJECT_KINDS.reduce((sum, kind) => sum + (walk[kind].rows / PAGE_SIZE) * walk[kind][what], 0);
}

function figuresOf(figures: PlanFigures | undefined): string {
  return figures === undefined ? "-" : `${figures.rows} / ${figures.blocks} / ${figures.ms.toFixed(1)}`;
}

function total({ plans }: Measured, what: "rows" | "blocks"): string {
  return [...plans.values()].reduce((sum, one) => sum + one[what], 0).toLocaleString("en");
}

function print(rows: readonly (readonly string[])[]): void {
  const width = (column: number) => Math.max(...rows.map((row) => row[column]?.length ?? 0));
  for (const row of rows) {
    const cells = row.map((cell, at) => (at === 0 ? cell.padEnd(width(0)) : cell.padStart(width(at))));
    process.stdout.write(`${cells.join("   ")}\n`);
  }
}
