import { sql } from "drizzle-orm";
import { index, integer, pgEnum, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { json, moment } from "./schema.js";

export const reconciliationState = pgEnum("reconciliation_state", ["running", "completed", "failed"]);

/** One comparison of a window with the provider. Its cursor is durable: a run that dies goes on where it was. */
export const reconciliationRuns = pgTable(
  "reconciliation_runs",
  {
    provider: text("provider").notNull(),
    id: text("id").notNull(),
    account: text("account").notNull(),
    /** `worker`, `command` or `recover`. */
    trigger: text("trigger").notNull(),
    windowFrom: moment("window_from").notNull(),
    windowTo: moment("window_to").notNull(),
    state: reconciliationState("state").notNull().default("running"),
    /** What is being paged through, and the provider's cursor in it; null: from its beginning. */
    phase: text("phase").notNull(),
    cursor: text("cursor"),
    pages: integer("pages").notNull().default(0),
    objects: integer("objects").notNull().default(0),
    repaired: integer("repaired").notNull().default(0),
    error: text("error"),
    leaseOwner: text("lease_owner"),
    leaseExpiresAt: moment("lease_expires_at"),
    startedAt: moment("started_at").notNull().defaultNow(),
    finishedAt: moment("finished_at"),
  },
  (t) => [
    primaryKey({ columns: [t.provider, t.id] }),
    index("reconciliation_runs_open").on(t.startedAt).where(sql`${t.state} = 'running'`),
  ],
);

export const findingState = pgEnum("finding_state", ["open", "repaired", "gone", "accepted"]);

/** One difference between our rows and the provider's objects, however many runs have seen it. */
export const reconciliationFindings = pgTable(
  "reconciliation_findings",
  {
    provider: text("provider").notNull(),
    /** `missing_here`, `missing_there`, `amount_differs`, … */
    kind: text("kind").notNull(),
    /** The provider's object, or our row where the provider has none. */
    objectId: text("object_id").notNull(),
    tenantId: text("tenant_id"),
    paymentId: text("payment_id"),
    state: findingState("state").notNull().default("open"),
    ours: json("ours"),
    theirs: json("theirs"),
    detail: text("detail").notNull(),
    firstRun: text("first_run").notNull(),
    lastRun: text("last_run").notNull(),
    firstSeenAt: moment("first_seen_at").notNull().defaultNow(),
    lastSeenAt: moment("last_seen_at").notNull().defaultNow(),
    closedAt: moment("closed_at"),
    /** A person's word on it, as it was last given; it may have come to differ otherwise since. */
    acceptedReason: text("accepted_reason"),
    acceptedBy: text("accepted_by"),
    acceptedAt: moment("accepted_at"),
  },
  (t) => [
    primaryKey({ columns: [t.provider, t.kind, t.objectId] }),
    index("reconciliation_findings_open").on(t.lastSeenAt).where(sql`${t.state} = 'open'`),
    // What a run has closed, as its report pages through it; and what is old enough to be deleted.
    index("reconciliation_findings_closed")
      .on(t.provider, t.lastRun, t.kind, t.objectId)
      .where(sql`${t.state} <> 'open'`),
    index("reconciliation_findings_aged")
      .on(sql`greatest(${t.closedAt}, ${t.lastSeenAt})`)
      .where(sql`${t.state} <> 'open'`),
  ],
);
