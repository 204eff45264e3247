import type { FindingKind, FindingState } from "../domain/finding.js";
import type { Queryable } from "./db.js";
import { type Finding, type FindingName, findingOf } from "./reconciliation.js";
import type { Row } from "./rows.js";

/**
 * What a run's report tells, by kind and object, behind that name: everything that is open, whoever has seen it, or what
 * this run has closed.
 */
export async function listReported(
  db: Queryable,
  provider: string,
  wanted: {
    readonly part: "open" | "closed";
    readonly runId: string;
    readonly after: FindingName | null;
    readonly limit: number;
  },
): Promise<Finding[]> {
  const { part, runId, after, limit } = wanted;
  const rows = await db<Row[]>`
    select * from reconciliation_findings
     where provider = ${provider}
       and ${part === "open" ? db`state = 'open'` : db`state <> 'open' and last_run = ${runId}`}
       ${after === null ? db`` : db`and (kind, object_id) > (${after.kind}, ${after.objectId})`}
     order by kind, object_id limit ${limit}`;
  return rows.map(findingOf);
}

export interface FindingCount {
  readonly kind: FindingKind;
  readonly state: FindingState;
  readonly count: number;
}

/** How many there are of what `listReported` lists, in both parts: each has its index, an `or` of both has none. */
export async function countReported(db: Queryable, provider: string, runId: string): Promise<FindingCount[]> {
  const rows = await db<Row[]>`
    select kind, state, count(*)::int as findings
      from (select kind, state from reconciliation_findings where provider = ${provider} and state = 'open'
            union all
            select kind, state from reconciliation_findings
             where provider = ${provider} and state <> 'open' and last_run = ${runId}) f
     group by kind, state order by kind, state`;
  return rows.map((row) => ({
    kind: row["kind"] as FindingKind,
    state: row["state"] as FindingState,
    count: Number(row["findings"]),
  }));
}
