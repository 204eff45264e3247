import { JSON_TYPE } from "../../domain/documents.js";
import type { AccountBalance } from "../../domain/ledger.js";
import { jsonText } from "../../lib/json-text.js";
import { getBalances, listLedgerEntries, type PostedEntry } from "../../operations/read-ledger.js";
import type { Endpoint } from "../endpoint.js";
import { listAnswer } from "../json-answer.js";
import { balancesSchema, entriesQuery, ledgerEntrySchema } from "../ledger-schemas.js";
import { jsonContent, problems } from "../openapi-parts.js";
import { listOf } from "../response-schemas.js";
import { noQuery } from "../schemas.js";
import { validatedQuery } from "../validate.js";

const TAG = "Ledger";

const balances: Endpoint = {
  method: "get",
  path: "/v1/balances",
  scope: "payments:read",
  documentation: {
    operationId: "getBalances",
    tags: [TAG],
    summary: "Read the balances",
    description:
      "Every account with any movement, by currency, exact at one moment. Always whole and never in pages, so that the debits of a currency equal its credits.",
    responses: {
      200: { description: "The accounts.", content: jsonContent(balancesSchema) },
      ...problems("validation_failed"),
    },
  },
  async handle({ deps, caller, http }) {
    validatedQuery(noQuery, http.req.url);
    const data = (await getBalances(deps, caller)).map(balanceDocument);
    const body = jsonText({ data, has_more: false, next_cursor: null });
    return { status: 200, headers: { "Content-Type": JSON_TYPE }, body };
  },
};

function balanceDocument({ currency, account, debits, credits }: AccountBalance) {
  return { object: "balance", currency, account, debits, credits, balance: debits - credits };
}

const entries: Endpoint = {
  method: "get",
  path: "/v1/ledger/entries",
  scope: "payments:read",
  documentation: {
    operationId: "listLedgerEntries",
    tags: [TAG],
    summary: "List a payment's ledger entries",
    description: "Each entry is one transfer between two accounts, made by what happened to the payment.",
    request: { query: entriesQuery },
    responses: {
      200: {
        description: "A page of entries, the oldest first.",
        content: jsonContent(listOf(ledgerEntrySchema)),
      },
      ...problems("validation_failed", "not_found"),
    },
  },
  async handle({ deps, caller, http }) {
    const { payment, limit, cursor } = validatedQuery(entriesQuery, http.req.url);
    const page = await listLedgerEntries(deps, caller, payment, { limit, cursor: cursor ?? null });
    return listAnswer(page, (entry) => entryDocument(payment, entry));
  },
};

function entryDocument(payment: string, entry: PostedEntry) {
  return {
    object: "ledger_entry",
    payment,
    fact: entry.fact,
    leg: entry.leg,
    debit_account: entry.debitAccount,
    credit_account: entry.creditAccount,
    amount: entry.amount,
    currency: entry.currency,
    created_at: entry.createdAt.toISOString(),
  };
}

export const ledgerEndpoints: readonly Endpoint[] = [balances, entries];
