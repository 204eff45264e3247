import type { Payment } from "../domain/payment.js";
import type { TimelineEntry } from "../domain/timeline-entry.js";
import { withDatabase } from "../store/db.js";
import { findTenantOfPayment, readPayment, readTimeline } from "../store/payments.js";
import type { Deps } from "./deps.js";

/** A payment's timeline grows by a row a transition or question; more than this is cut off in the operator's view. */
const MOST_ENTRIES = 1_000;

/** For the operator's command line, across tenants. Null: there is no such payment. */
export async function showPayment(
  deps: Pick<Deps, "db">,
  paymentId: string,
): Promise<{ readonly payment: Payment; readonly timeline: readonly TimelineEntry[] } | null> {
  return withDatabase(async () => {
    const tenantId = await findTenantOfPayment(deps.db.sql, paymentId);
    const payment = tenantId === null ? null : await readPayment(deps.db.sql, tenantId, paymentId);
    if (tenantId === null || payment === null) return null;
    const timeline = await readTimeline(deps.db.sql, tenantId, paymentId, {
      limit: MOST_ENTRIES,
      after: null,
    });
    return { payment, timeline };
  });
}
