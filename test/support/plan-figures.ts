/** What a plan of EXPLAIN (ANALYZE, BUFFERS) says that its statement cost. */
export interface PlanFigures {
  /** Rows that were read from tables and indexes, those that a filter threw away included. */
  readonly rows: number;
  /** Blocks of 8 kB that were asked for, each as often as it was. */
  readonly blocks: number;
  readonly ms: number;
  /** Big tables that were scanned whole. */
  readonly scans: readonly string[];
}

const READS = /(?:Seq|Index|Index Only|Bitmap Heap|Tid|Tid Range|Sample) Scan/;

export function planFigures(plan: readonly string[], big: ReadonlySet<string>): PlanFigures {
  let rows = 0;
  let loops = 0;
  for (const line of plan) {
    const node = /\(actual rows=([\d.]+) loops=(\d+)\)/.exec(line);
    // What is thrown away stands below its node: of a scan, rows that were read; of any other, rows that were made.
    if (node !== null) loops = READS.test(line) ? Number(node[2]) : 0;
    const thrown = /Rows Removed by (?:Filter|Index Recheck): (\d+)/.exec(line);
    rows += loops * Number((node ?? thrown)?.[1] ?? 0);
  }
  const buffers = plan.find((line) => line.includes("Buffers: ")) ?? "";
  const blocks = [...buffers.matchAll(/(?:hit|read)=(\d+)/g)].reduce(
    (sum, [, count]) => sum + Number(count),
    0,
  );
  const ms = Number(/Execution Time: ([\d.]+)/.exec(plan.at(-1) ?? "")?.[1]);
  const scans = plan
    .flatMap((line) => /Seq Scan on (\w+)/.exec(line)?.[1] ?? [])
    .filter((name) => big.has(name));
  return { rows: Math.round(rows), blocks, ms, scans };
}
