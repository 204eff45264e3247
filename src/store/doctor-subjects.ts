import type { Subject, SubjectKind } from "../domain/doctor.js";
import { firstIdAt } from "../lib/ids.js";
import type { Queryable } from "./db.js";
import type { SqlPart } from "./key-claims.js";
import type { Row } from "./rows.js";

/**
 * Which rows are looked at. What is new and what there is at all is paged through by primary key, tenant by tenant: ids
 * that are made later sort behind. What is open is read from the partial indexes of what is open.
 */

/** Everything of a kind behind `after`; with `since`, of what was made since then (payments and events alone). */
export interface PageRequest {
  readonly kind: SubjectKind;
  readonly since: Date | null;
  readonly after: Subject | null;
  readonly limit: number;
}

/** Column names of each kind's primary key behind the tenant. */
const NAMES: Readonly<Record<SubjectKind, readonly string[]>> = {
  payment: ["id"],
  attempt: ["id"],
  event: ["id"],
  key: ["operation", "key"],
  order_id: ["merchant_order_id"],
};

/** For a statement: the CTE `subject` with these rows' names, and their places in the list as `n`. */
export function subjectInput(db: Queryable, kind: SubjectKind, subjects: readonly Subject[]): SqlPart {
  const rows = JSON.stringify(subjects.map((subject, n) => ({ ...subject, n })));
  const columns = ["tenant_id", ...NAMES[kind]].map((name) => `${name} text`).join(", ");
  return db`subject as materialized (
    select * from json_to_recordset(${rows}::text::json) as s(n int, ${db.unsafe(columns)}))`;
}

/** The next page, in the order of the primary key; shorter than `limit`: it is the last one. */
export function subjectPage(db: Queryable, { kind, since, after, limit }: PageRequest): SqlPart {
  const tenant = after?.["tenant_id"] ?? "";
  const from = (name: string, prefix: "pay" | "evt" | null) => {
    const first = since === null || prefix === null ? "" : firstIdAt(prefix, since);
    return db`case when t.id = ${tenant} then ${after?.[name] ?? first} else ${first} end`;
  };
  const tenants = db`(select id from tenants where id >= ${tenant} order by id) t`;
  switch (kind) {
    case "payment":
      return db`
        select x.tenant_id, x.id from ${tenants} cross join lateral (
          select p.tenant_id, p.id from payments p
           where p.tenant_id = t.id and p.id > ${from("id", "pay")} order by p.id limit ${limit}) x
         order by t.id, x.id limit ${limit}`;
    case "event":
      return db`
        select x.tenant_id, x.id, x.payment_id from ${tenants} cross join lateral (
          select o.tenant_id, o.id, o.payment_id from outbox o
           where o.tenant_id = t.id and o.id > ${from("id", "evt")} order by o.id limit ${limit}) x
         order by t.id, x.id limit ${limit}`;
    case "attempt":
      return db`
        select x.tenant_id, x.id from ${tenants} cross join lateral (
          select a.tenant_id, a.id from attempts a
           where a.tenant_id = t.id and a.id > ${from("id", null)} order by a.id limit ${limit}) x
         order by t.id, x.id limit ${limit}`;
    case "key":
      return db`
        select x.tenant_id, x.operation, x.key from ${tenants} cross join lateral (
          select k.tenant_id, k.operation, k.key from idempotency_keys k
           where k.tenant_id = t.id and (k.operation, k.key) > (${from("operation", null)}, ${from("key", null)})
           order by k.operation, k.key limit ${limit}) x
         order by t.id, x.operation, x.key limit ${limit}`;
    case "order_id":
      return db`
        select x.tenant_id, x.merchant_order_id from ${tenants} cross join lateral (
          select o.tenant_id, o.merchant_order_id from order_ids o
           where o.tenant_id = t.id and o.merchant_order_id > ${from("merchant_order_id", null)}
           order by o.merchant_order_id limit ${limit}) x
         order by t.id, x.merchant_order_id limit ${limit}`;
  }
}

const TABLES: Readonly<Record<SubjectKind, string>> = {
  payment: "payments",
  attempt: "attempts",
  event: "outbox",
  key: "idempotency_keys",
  order_id: "order_ids",
};
/** Blocks of a table that rows are drawn from. */
const SAMPLE_BLOCKS = 16;

/** The rows of some blocks of the table, drawn: about as many, however large it is. None where its size is not known. */
export function sampledSubjects(db: Queryable, kind: SubjectKind): SqlPart {
  const table = TABLES[kind];
  return db`
    select ${db(["tenant_id", ...NAMES[kind]])} from ${db(table)} tablesample system ((
      select coalesce(least(100, 100.0 * ${SAMPLE_BLOCKS}::int * current_setting('block_size')::int
                                       / nullif(pg_relation_size(${table}::text::regclass), 0)), 0)))`;
}

/** What is due first; its payments are looked at, too. */
export function dueAttempts(db: Queryable, limit: number): SqlPart {
  return db`select tenant_id, id, payment_id from attempts where due_at is not null order by due_at limit ${limit}`;
}

export function reviewedPayments(db: Queryable, limit: number): SqlPart {
  return db`
    select distinct tenant_id, payment_id as id from (
      select tenant_id, payment_id from reviews where closed_at is null
       order by tenant_id, attempt_id, object_id limit ${limit}) reviewed`;
}

/** The keys that were answered last. */
export function answeredKeys(db: Queryable, limit: number): SqlPart {
  return db`
    select tenant_id, operation, key from idempotency_keys where expires_at is not null
     order by expires_at desc limit ${limit}`;
}

/** A row as the name of a subject, and the payment that it is of where it tells. */
export function subjectOf(kind: SubjectKind, row: Row): Subject {
  const names = ["tenant_id", ...NAMES[kind]];
  return Object.fromEntries(names.map((name) => [name, row[name] as string]));
}
