import type postgres from "postgres";
import { expect } from "vitest";
import type { Invariant } from "../../src/domain/doctor.js";
import { newId } from "../../src/lib/ids.js";
import type { Lived } from "./doctor.js";

/** An invariant, the payment that breaks it where it is one's, and what else is named. */
type Named = readonly [Invariant, string | null, Readonly<Record<string, unknown>>?];

export interface BrokenCase {
  readonly breaks: string;
  readonly by: (sql: postgres.Sql, lived: Lived) => Promise<unknown>;
  readonly finds: (lived: Lived) => readonly Named[];
  /** Of what is found, what only the way through everything meets: nothing that is open or new leads there. */
  readonly onlyInAll?: readonly number[];
}

const anything = expect.any(String) as string;

/** Money, order ids, books and refunds, broken by hand. */
export const MONEY_CASES: readonly BrokenCase[] = [
  {
    breaks: "a second charge of a payment",
    by: (sql, { lives }) => sql`
      insert into attempts (tenant_id, id, payment_id, operation, idempotency_key, run, request_id, state, due_at,
        provider, livemode, parameters, provider_payment_id)
      select tenant_id, 'att_other', payment_id, operation, 'other', 1, request_id, state, null, provider, livemode,
             parameters, 'pi_other' from attempts where payment_id = ${lives.sale}`,
    finds: ({ lives }) => [
      ["two_objects_of_payment", lives.sale, { attempt_id: "att_other", charge_attempt_id: anything }],
    ],
    onlyInAll: [0],
  },
  {
    breaks: "a capture of another object than the payment's",
    by: (sql, { lives }) =>
      sql`update attempts set provider_payment_id = 'pi_other' where payment_id = ${lives.captured} and kind = 'capture'`,
    finds: ({ lives }) => [["two_objects_of_payment", lives.captured]],
  },
  {
    breaks: "two charges with one object",
    by: (sql, { lives }) => sql`
      update attempts a set provider_payment_id = b.provider_payment_id from attempts b
       where a.payment_id = ${lives.sale} and b.payment_id = ${lives.action}`,
    finds: ({ lives }) => [
      ["object_of_two_attempts", lives.action],
      [
        "object_of_two_attempts",
        lives.sale,
        expect.objectContaining({ provider_payment_id: anything }) as never,
      ],
    ],
  },
  {
    breaks: "a paid payment whose charge names no object",
    by: (sql, { lives }) =>
      sql`update attempts set provider_payment_id = null where payment_id = ${lives.sale} and kind = 'charge'`,
    finds: ({ lives }) => [["charge_without_object", lives.sale, { attempt_id: anything }]],
  },
  {
    breaks: "an order that is paid twice",
    by: async (sql, { lives }) => {
      await sql`delete from order_ids where payment_id = ${lives.captured}`;
      await sql`update payments set merchant_order_id = 'life-sale', holds_order_id = false where id = ${lives.captured}`;
    },
    finds: ({ lives }) => [
      [
        "two_charges_of_order_id",
        lives.captured,
        { merchant_order_id: "life-sale", other_payment_id: lives.sale },
      ],
      [
        "two_charges_of_order_id",
        lives.sale,
        { merchant_order_id: "life-sale", other_payment_id: lives.captured },
      ],
    ],
  },
  {
    breaks: "an order id whose row names another payment",
    by: (sql, { lives }) =>
      sql`update order_ids set payment_id = ${lives.captured} where merchant_order_id = 'life-sale'`,
    finds: ({ lives }) => [
      ["order_id_disagrees", lives.captured, { merchant_order_id: "life-sale" }],
      ["order_id_disagrees", lives.sale, { merchant_order_id: "life-sale" }],
    ],
    onlyInAll: [0],
  },
  {
    breaks: "a payment that says it does not hold the order id that it holds",
    by: (sql, { lives }) => sql`update payments set holds_order_id = false where id = ${lives.sale}`,
    finds: ({ lives }) => [["order_id_disagrees", lives.sale, { merchant_order_id: "life-sale" }]],
  },
  {
    breaks: "a balance",
    by: (sql) => sql`update ledger_balances set debits = debits + 1 where account = 'provider_fees'`,
    finds: () => [["ledger_unbalanced", null, { currency: "usd" }]],
  },
  {
    breaks: "an entry of a sale",
    by: (sql, { lives }) =>
      sql`update ledger_entries set amount = amount - 1 where payment_id = ${lives.sale} and fact = 'captured'`,
    finds: ({ lives }) => [["books_differ", lives.sale]],
  },
  {
    breaks: "refunds of more than was captured",
    by: async (sql, { lives }) => {
      await sql`
        insert into refunds (tenant_id, id, payment_id, attempt_id, amount, currency, metadata, provider)
        select tenant_id, ${newId("re")}, payment_id, attempt_id, 20000, currency, '{}', provider from refunds
         where payment_id = ${lives.refunded} limit 1`;
      await sql`update payments set refund_reserved = refund_reserved + 20000 where id = ${lives.refunded}`;
    },
    finds: ({ lives }) => [["refunds_out_of_order", lives.refunded]],
  },
  {
    breaks: "the sum of refunds",
    by: (sql, { lives }) =>
      sql`update payments set refund_reserved = refund_reserved + 1 where id = ${lives.refunded}`,
    finds: ({ lives }) => [["refund_sums_differ", lives.refunded]],
  },
  {
    breaks: "a refund whose attempt is lost",
    by: (sql, { lives }) => sql`delete from attempts where payment_id = ${lives.partly} and kind = 'refund'`,
    finds: ({ lives }) => [["attempt_missing", lives.partly, { attempt_id: anything }]],
  },
];
