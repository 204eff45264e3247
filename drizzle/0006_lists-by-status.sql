-- Lists that read no more than they show, and empty tables that are not believed to stay empty.
--
-- * payments.rare_status: a page of payments by any status but `processing` and `succeeded` read all payments of all
--   tenants where few are in it (61,900 blocks of two million payments; 129 with the index). An index that names `status`
--   would end the updates within a row's page (HOT) of every payment that succeeds; a generated column that stays null on
--   that way does not. `processing` has no index for the same reason: every payment is in it once.
-- * reconciliation_findings: a run's report and the deletion of old rows read all that are kept (37,000 blocks of a million).
--
-- payments is rewritten once, under a lock that lets nobody read it: some 5 s for a million payments.
CREATE INDEX "reconciliation_findings_closed" ON "reconciliation_findings" USING btree ("provider","last_run","kind","object_id") WHERE "reconciliation_findings"."state" <> 'open';--> statement-breakpoint
CREATE INDEX "reconciliation_findings_aged" ON "reconciliation_findings" USING btree (greatest("closed_at", "last_seen_at")) WHERE "reconciliation_findings"."state" <> 'open';--> statement-breakpoint
ALTER TABLE "payments" ADD COLUMN "rare_status" "payment_status" GENERATED ALWAYS AS (case when status not in ('processing', 'succeeded') then status end) STORED;--> statement-breakpoint
CREATE INDEX "payments_by_rare_status" ON "payments" USING btree ("rare_status","tenant_id","id") WHERE "payments"."rare_status" is not null;--> statement-breakpoint
-- As 0003: an empty table counts as one of which nothing is known yet (reltuples -1), and its statistics hold.
--
-- On a new database 0003 does not come to that. All migrations run in one transaction there, and TRUNCATE of a table that
-- the same transaction has made only cuts it off and counts its rows again: none. In a subtransaction, which the
-- EXCEPTION makes of this block, it gives the table a new file, of which nothing is known. Rewritten and newly indexed
-- tables are counted, too: whoever adds an index to one of these must end the migration like this one. Tables that refer to
-- each other are truncated together, or not at all.
do $$
declare
  tables text;
  has_rows boolean;
begin
  foreach tables in array array['payments, attempts, refunds', 'refunds', 'idempotency_keys', 'order_ids', 'timeline', 'outbox',
    'reviews', 'deliveries', 'webhook_endpoints', 'ledger_entries', 'ledger_uncounted', 'ledger_balances', 'provider_events'] loop
    begin
      -- Nobody writes to it between the look and the end of this transaction.
      execute format('lock table %s in access exclusive mode nowait', tables);
      execute format('select exists (select from %s)', split_part(tables, ',', 1)) into has_rows;
      if not has_rows then
        execute format('truncate %s', tables);
      end if;
    exception when lock_not_available then
      -- Somebody is at work there: it stays as it is, until the next ANALYZE.
    end;
  end loop;
end $$;
