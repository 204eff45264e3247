import type { ProviderRefundStatus, RefundLookupOutcome } from "../../domain/provider.js";
import type { Logger } from "../../lib/log.js";
import { mostAdvanced } from "./find-charge.js";
import { type ListPage, listAll } from "./list-pages.js";
import { bearsMark } from "./outcome.js";
import { toProviderRefund } from "./refund-outcome.js";

/** Of two refunds for one attempt, the one in which money went back, or may yet go, counts. */
const PROGRESS: readonly ProviderRefundStatus[] = ["failed", "unrecognized", "pending", "succeeded"];

/**
 * Looks for an attempt's refund among all refunds of its charge object. Reads to the last page even after a match,
 * since a key that was pruned at Stripe may have made a second one.
 */
export async function findRefund(
  listPage: ListPage,
  { attemptId }: { readonly attemptId: string },
  log: Logger,
): Promise<RefundLookupOutcome> {
  const listed = await listAll(listPage, (entry) =>
    bearsMark(entry, attemptId) ? toProviderRefund(entry) : "skip",
  );
  if (listed.type !== "all") return listed;
  const { evidence } = listed;
  const refund = mostAdvanced(listed.items, PROGRESS, attemptId, log);
  return refund === null ? { type: "absent", evidence } : { type: "found", refund, evidence };
}
