import { until } from "../support/until.js";
import type { Review } from "./check-answers.js";
import type { ChaosSystem } from "./system.js";

/** What is younger is not compared. */
const LAG_MS = 1_000;
/** Nobody kills it, and a page may be long. */
const UNHURRIED = {
  RECONCILE_LAG_MS: String(LAG_MS),
  PROVIDER_TIMEOUT_MS: "20000",
  ATTEMPT_LEASE_MS: "60000",
};
/** The exit of a comparison that has something to tell. */
const DIFFERENCES_REMAIN = 3;

interface Report {
  readonly run: { readonly state: string; readonly error: string | null };
  readonly findings: readonly {
    readonly kind: string;
    readonly object_id: string;
    readonly state: string;
    readonly detail: string;
  }[];
  readonly unfinished: {
    readonly expired_leases: number;
    readonly due_unknowns: number;
    readonly parked_events: number;
    readonly open_reviews: number;
  };
}

/** `pawl reconcile` over the whole run: nothing differs, and of what is unfinished nothing but the explained reviews. */
export async function comparisonFaults(
  system: ChaosSystem,
  from: Date,
  reviews: readonly Review[],
): Promise<string[]> {
  await until(
    "a second in which nothing has changed",
    async () => {
      const [row] = await system.database.sql<{ age_ms: number }[]>`
        select coalesce(extract(epoch from now() - max(updated_at)) * 1000, 1e9)::float8 as age_ms from payments`;
      return row?.age_ms ?? 0;
    },
    // The provider counts in whole seconds.
    (ageMs) => ageMs > LAG_MS + 1_000,
  );
  const args = ["reconcile", "--from", from.toISOString()];
  const report = await system.command<Report>(args, UNHURRIED, DIFFERENCES_REMAIN);
  const { run, findings, unfinished } = report;
  const left = [
    ["expired leases", unfinished.expired_leases, 0],
    ["parked events", unfinished.parked_events, 0],
    ["open reviews", unfinished.open_reviews, reviews.length],
  ] as const;
  return [
    ...(run.state === "completed" && run.error === null
      ? []
      : [`the comparison is ${run.state}: ${String(run.error)}`]),
    ...findings
      .filter(({ state }) => state === "open")
      .map((one) => `the comparison finds ${one.kind} of ${one.object_id}: ${one.detail}`),
    ...left.flatMap(([what, count, wanted]) =>
      count === wanted ? [] : [`the comparison tells of ${count} ${what}, not ${wanted}`],
    ),
  ];
}
