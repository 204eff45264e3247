-- Each unresolved attempt has its own open review, and each further object at the provider that only a person can judge
-- (money on a second object, a refund that fits no payment) has one, too. Before, the first of a payment hid the others.
--
-- * A review keeps its former reasons: what it was decided for is compared with what it is about by then.
-- * A difference with the provider that a person has accepted is not told again, as long as it is the same.
--
-- A process of the version before this one names the former index in every write of progress, and each fails from here
-- on: nothing is sent then, since that is written first, and what it holds is taken over when its lease has ended.
-- Nothing here reads or rewrites a table that grows with payments. reviews is no table whose statistics must be seeded
-- again (0003): it was truncated there, so that its rows count as not yet known.
ALTER TYPE "public"."finding_state" ADD VALUE 'accepted';--> statement-breakpoint
DROP INDEX "reviews_open";--> statement-breakpoint
ALTER TABLE "reconciliation_findings" ADD COLUMN "accepted_reason" text;--> statement-breakpoint
ALTER TABLE "reconciliation_findings" ADD COLUMN "accepted_by" text;--> statement-breakpoint
ALTER TABLE "reconciliation_findings" ADD COLUMN "accepted_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "reviews" ADD COLUMN "object_id" text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE "reviews" ADD COLUMN "history" json DEFAULT '[]'::json NOT NULL;--> statement-breakpoint
-- What is open about another object says which: the timeline has it. One that is being dismissed ends as it was to.
update reviews r
   set object_id = coalesce((
         select split_part(t.outcome, ' ', 2) from timeline t
          where t.tenant_id = r.tenant_id and t.payment_id = r.payment_id and t.kind = 'fact' and t.reason = r.reason
          order by t.at desc limit 1), r.id)
 where r.closed_at is null and r.resolution is null
   and r.reason in ('provider_object_stray', 'outside_refund_mismatch');--> statement-breakpoint
CREATE UNIQUE INDEX "reviews_open" ON "reviews" USING btree ("tenant_id","attempt_id","object_id") WHERE "reviews"."closed_at" is null;
