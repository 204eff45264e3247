import {
  bigint,
  boolean,
  foreignKey,
  index,
  integer,
  pgEnum,
  pgTable,
  primaryKey,
  text,
} from "drizzle-orm/pg-core";
import { json, moment, payments } from "./schema.js";

export const refundStatus = pgEnum("refund_status", ["processing", "succeeded", "failed", "needs_review"]);

/** One refund, ours or one made outside (`external`). Its amount counts in `payments.refund_reserved` until it fails. */
export const refunds = pgTable(
  "refunds",
  {
    tenantId: text("tenant_id").notNull(),
    id: text("id").notNull(),
    paymentId: text("payment_id").notNull(),
    attemptId: text("attempt_id").notNull(),
    status: refundStatus("status").notNull().default("processing"),
    version: integer("version").notNull().default(1),
    amount: bigint("amount", { mode: "number" }).notNull(),
    currency: text("currency").notNull(),
    reason: text("reason"),
    metadata: json("metadata").notNull(),
    provider: text("provider").notNull(),
    providerRefundId: text("provider_refund_id"),
    failure: json("failure"),
    external: boolean("external").notNull().default(false),
    createdAt: moment("created_at").notNull().defaultNow(),
    updatedAt: moment("updated_at").notNull().defaultNow(),
  },
  (t) => [
    primaryKey({ columns: [t.tenantId, t.id] }),
    foreignKey({ columns: [t.tenantId, t.paymentId], foreignColumns: [payments.tenantId, payments.id] }),
    index("refunds_by_payment").on(t.paymentId, t.tenantId, t.id),
  ],
);
