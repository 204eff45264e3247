import type { Failure } from "./payment.js";

export const REFUND_STATUSES = ["processing", "succeeded", "failed", "needs_review"] as const;
export type RefundStatus = (typeof REFUND_STATUSES)[number];

/** Money on its way back. Its amount is reserved from the accept on, until the refund has failed. */
export interface Refund {
  readonly tenantId: string;
  readonly id: string;
  readonly paymentId: string;
  readonly attemptId: string;
  readonly status: RefundStatus;
  /** Grows by one with every write; compare-and-set names it. */
  readonly version: number;
  /** Integer, ISO 4217 minor unit. */
  readonly amount: number;
  readonly currency: string;
  readonly reason: string | null;
  readonly metadata: Readonly<Record<string, string>>;
  readonly provider: string;
  readonly providerRefundId: string | null;
  readonly failure: Failure | null;
  /** Made outside Pawl, at the provider's dashboard for one, and followed since. */
  readonly external: boolean;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}
