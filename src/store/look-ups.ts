import type { Queryable } from "./db.js";
import type { SqlPart } from "./key-claims.js";

/**
 * Joins of rows by their whole primary key (tenant_id, id), in the order in which they are written. The planner sees no
 * other way behind an `offset 0`. Without it a plan that is made while a table is small may read the whole tenant, since
 * that is as cheap then, and a prepared statement keeps its plan while the table grows, until the next ANALYZE.
 */
type Keyed = "payments" | "attempts" | "refunds" | "reviews" | "outbox" | "webhook_endpoints";

/** `join` of the row, which must be there for the other rows to stay. `alias` names it. */
export function rowOf(db: Queryable, table: Keyed, alias: string, tenantId: SqlPart, id: SqlPart): SqlPart {
  return db`cross join lateral ${keyed(db, table, alias, tenantId, id)}`;
}

/** `left join` of the row. */
export function rowIfAny(
  db: Queryable,
  table: Keyed,
  alias: string,
  tenantId: SqlPart,
  id: SqlPart,
): SqlPart {
  return db`left join lateral ${keyed(db, table, alias, tenantId, id)} on true`;
}

function keyed(db: Queryable, table: Keyed, alias: string, tenantId: SqlPart, id: SqlPart): SqlPart {
  return db`(select * from ${db(table)} one where one.tenant_id = ${tenantId} and one.id = ${id} offset 0) ${db(alias)}`;
}
