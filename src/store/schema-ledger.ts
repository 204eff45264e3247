import { bigint, integer, numeric, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { moment } from "./schema.js";

/**
 * Double entry, insert-only: each row is one transfer, balanced by construction. Its key is the fact that it follows
 * from, so that no fact posts twice.
 */
export const ledgerEntries = pgTable(
  "ledger_entries",
  {
    tenantId: text("tenant_id").notNull(),
    paymentId: text("payment_id").notNull(),
    /** Unique among the payment's facts: `captured`, `refunded:re_…`, `fee:txn_…`, … */
    fact: text("fact").notNull(),
    leg: integer("leg").notNull(),
    currency: text("currency").notNull(),
    debitAccount: text("debit_account").notNull(),
    creditAccount: text("credit_account").notNull(),
    amount: bigint("amount", { mode: "number" }).notNull(),
    createdAt: moment("created_at").notNull().defaultNow(),
  },
  (t) => [primaryKey({ columns: [t.tenantId, t.paymentId, t.fact, t.leg] })],
);

/** The entries that `ledger_balances` does not contain yet: written with them, deleted by the roll-up that counts them. */
export const ledgerUncounted = pgTable(
  "ledger_uncounted",
  {
    tenantId: text("tenant_id").notNull(),
    paymentId: text("payment_id").notNull(),
    fact: text("fact").notNull(),
    leg: integer("leg").notNull(),
    currency: text("currency").notNull(),
    debitAccount: text("debit_account").notNull(),
    creditAccount: text("credit_account").notNull(),
    amount: bigint("amount", { mode: "number" }).notNull(),
  },
  (t) => [primaryKey({ columns: [t.tenantId, t.paymentId, t.fact, t.leg] })],
);

/** Sums of counted entries. Written by the roll-up alone: no payment ever waits for a row of it. */
export const ledgerBalances = pgTable(
  "ledger_balances",
  {
    tenantId: text("tenant_id").notNull(),
    currency: text("currency").notNull(),
    account: text("account").notNull(),
    debits: numeric("debits", { precision: 30, scale: 0 }).notNull(),
    credits: numeric("credits", { precision: 30, scale: 0 }).notNull(),
  },
  (t) => [primaryKey({ columns: [t.tenantId, t.currency, t.account] })],
);
