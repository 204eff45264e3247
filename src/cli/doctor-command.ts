import { Command, InvalidArgumentError } from "commander";
import { type Violation, violationDocument } from "../domain/doctor.js";
import { type DoctorReport, examine, explain, timeBefore } from "../operations/doctor.js";
import type { Store } from "../wire.js";
import { withStore } from "./environment.js";
import { print, table, WrongUsage } from "./output.js";
import { readTime } from "./read-time.js";

const SOMETHING_IS_BROKEN = 3;
const HOUR_MS = 3_600_000;
const UNITS_MS: Readonly<Record<string, number>> = { m: 60_000, h: HOUR_MS, d: 24 * HOUR_MS };
const DEFAULT_SINCE_MS = 24 * HOUR_MS;
/** Pages between two words to whoever watches a long examination. */
const PAGES_A_WORD = 100;

/** A time, or how long ago. */
type Since = Date | { readonly agoMs: number };

interface Options {
  readonly since?: Since;
  readonly all?: boolean;
  readonly json?: boolean;
  readonly plan?: boolean;
}

export function doctorCommand(): Command {
  return new Command("doctor")
    .description("search the rows for what must never be; exit 3 where something is broken")
    .option(
      "--since <time>",
      "what was made or has moved since: 30m, 24h, 7d or RFC 3339 (default: 24h)",
      readSince,
    )
    .option("--all", "everything there is, page by page")
    .option("--plan", "print how PostgreSQL runs each statement here, instead of what it finds")
    .option("--json", "print one JSON document")
    .action((options: Options, command: Command) => {
      if (options.all === true && options.since !== undefined)
        command.error("error: --all and --since do not go together");
      return withStore(async (store) => {
        const since = options.all === true ? null : await sinceOf(store, options.since);
        await (options.plan === true ? plan(store, since, options) : look(store, since, options));
      });
    });
}

async function look(store: Store, since: Date | null, { json }: Options): Promise<void> {
  let pages = 0;
  const report = await examine(store, {
    since,
    onPage: (looked) => {
      pages += 1;
      if (json !== true && pages % PAGES_A_WORD === 0) process.stderr.write(`${lookedAt(looked)} …\n`);
    },
  });
  print(json === true, documentOf(report), linesOf(report));
  if (report.broken.length > 0) process.exitCode = SOMETHING_IS_BROKEN;
}

async function plan(store: Store, since: Date | null, { json }: Options): Promise<void> {
  const explained = await explain(store, since);
  const lines = explained.flatMap(({ name, plan: steps }) => [`-- ${name}`, ...steps, ""]);
  print(json === true, { plans: explained }, lines);
}

function documentOf({ startedAt, since, looked, broken, counts, more }: DoctorReport) {
  return {
    healthy: broken.length === 0,
    started_at: startedAt.toISOString(),
    since: since?.toISOString() ?? null,
    looked_at: looked,
    violations: broken.map(({ violation }) => violationDocument(violation)),
    counts: Object.fromEntries(counts),
    may_be_more: more,
  };
}

function linesOf({ since, looked, broken, more }: DoctorReport): string[] {
  const window = since === null ? "of all there is" : `since ${since.toISOString()}, and all that is open`;
  const rows = broken.map(({ violation }) => [
    violation.invariant,
    violation.paymentId ?? violation.tenantId ?? "-",
    idsOf(violation),
    violation.detail,
  ]);
  return [
    `Looked at ${lookedAt(looked)} ${window}.`,
    ...(broken.length === 0
      ? ["Nothing is broken."]
      : [
          ...table(["INVARIANT", "PAYMENT", "IDS", "WHAT"], rows),
          `${broken.length} broken${more ? ", and there may be more of the same" : ""}; docs/doctor.md tells what to do.`,
        ]),
  ];
}

function idsOf({ ids }: Violation): string {
  return Object.entries(ids)
    .map(([name, id]) => `${name}=${id}`)
    .join(" ");
}

function lookedAt(looked: DoctorReport["looked"]): string {
  const { payment, attempt, event, key, order_id: orderId } = looked;
  return `${payment} payments, ${attempt} attempts, ${event} events, ${key} keys, ${orderId} order ids`;
}

/** By the database's clock, as everything that it is compared with. Throws WrongUsage for a time that is to come. */
async function sinceOf(store: Store, since: Since | undefined): Promise<Date> {
  if (!(since instanceof Date)) return timeBefore(store, since?.agoMs ?? DEFAULT_SINCE_MS);
  if (since >= (await timeBefore(store, 0))) throw new WrongUsage("--since: must lie in the past");
  return since;
}

function readSince(value: string): Since {
  const [, count, unit] = /^(\d{1,6})([mhd])$/.exec(value) ?? [];
  const unitMs = UNITS_MS[unit ?? ""];
  if (Number(count) > 0 && unitMs !== undefined) return { agoMs: Number(count) * unitMs };
  try {
    return readTime(value);
  } catch {
    throw new InvalidArgumentError("must be 30m, 24h, 7d or a time such as 2026-11-29T00:00:00Z");
  }
}
