import { z } from "@hono/zod-openapi";
import { LEDGER_ACCOUNTS } from "../domain/ledger.js";
import { listOf, time } from "./response-schemas.js";
import { pageQuery } from "./schemas.js";
import { requiredText } from "./text-schema.js";

export const entriesQuery = z.strictObject({
  payment: requiredText({ most: 255, visibleAscii: true }).openapi({
    description: "The payment whose entries are wanted.",
    example: "pay_0198d5f2a3c47b1e9d20f6c1a8e45b77",
  }),
  ...pageQuery.shape,
});

const account = z.enum(LEDGER_ACCOUNTS);
const currency = z.string().openapi({ example: "usd" });

/** Sums of many payments may pass 2^53, where zod's own integers end. */
function sum(description: string) {
  return z.number().openapi({
    type: "integer",
    description: `${description} In the currency's minor unit, written digit for digit: read it as a big integer.`,
  });
}

export const balanceSchema = z
  .strictObject({
    object: z.literal("balance"),
    currency,
    account,
    debits: sum("All that was ever debited."),
    credits: sum("All that was ever credited."),
    balance: sum(
      "`debits` less `credits`: what an account holds or has cost above 0, what it has earned below.",
    ),
  })
  .openapi("Balance");

export const balancesSchema = listOf(balanceSchema).openapi("Balances");

export const ledgerEntrySchema = z
  .strictObject({
    object: z.literal("ledger_entry"),
    payment: z.string(),
    fact: z.string().openapi({ description: "What happened; no fact is posted twice.", example: "captured" }),
    leg: z.int().openapi({ description: "Counts the entries of one fact, from 1." }),
    debit_account: account,
    credit_account: account,
    amount: z.int().openapi({ description: "Above 0, in the currency's minor unit." }),
    currency,
    created_at: time,
  })
  .openapi("LedgerEntry");
