import type { Queryable } from "./db.js";
import { dateOrNull, type Row, requiredDate, textOrNull } from "./rows.js";

export interface Review {
  readonly tenantId: string;
  readonly id: string;
  readonly paymentId: string;
  readonly attemptId: string;
  readonly reason: string;
  readonly openedAt: Date;
  readonly closedAt: Date | null;
  readonly closedBy: string | null;
}

/** Open reviews, oldest first; across tenants where none is named: for the operator's command line. */
export async function listOpenReviews(
  db: Queryable,
  tenantId: string | null,
  limit: number,
): Promise<Review[]> {
  const rows = await db<Row[]>`
    select * from reviews
     where closed_at is null ${tenantId === null ? db`` : db`and tenant_id = ${tenantId}`}
     order by id limit ${limit}`;
  return rows.map((row) => ({
    tenantId: row["tenant_id"] as string,
    id: row["id"] as string,
    paymentId: row["payment_id"] as string,
    attemptId: row["attempt_id"] as string,
    reason: row["reason"] as string,
    openedAt: requiredDate(row["opened_at"]),
    closedAt: dateOrNull(row["closed_at"]),
    closedBy: textOrNull(row["closed_by"]),
  }));
}
