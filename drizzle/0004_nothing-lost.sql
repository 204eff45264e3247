-- What shows that nothing is lost and nothing doubled: reviews that a person resolves, comparisons with the provider and
-- what they find, and what tells that the database was restored or failed over.
--
-- * A resolution is an instruction to the review's attempt, carried out under its lease and fence like everything else.
-- * A finding's key is what differs, not the run that saw it: seen again it is the same finding.
-- * A run's cursor is committed with what its page brought, so that a run that dies goes on and repairs nothing twice.
CREATE TYPE "public"."finding_state" AS ENUM('open', 'repaired', 'gone');--> statement-breakpoint
CREATE TYPE "public"."reconciliation_state" AS ENUM('running', 'completed', 'failed');--> statement-breakpoint
CREATE TABLE "reconciliation_findings" (
	"provider" text NOT NULL,
	"kind" text NOT NULL,
	"object_id" text NOT NULL,
	"tenant_id" text,
	"payment_id" text,
	"state" "finding_state" DEFAULT 'open' NOT NULL,
	"ours" json,
	"theirs" json,
	"detail" text NOT NULL,
	"first_run" text NOT NULL,
	"last_run" text NOT NULL,
	"first_seen_at" timestamp with time zone DEFAULT now() NOT NULL,
	"last_seen_at" timestamp with time zone DEFAULT now() NOT NULL,
	"closed_at" timestamp with time zone,
	CONSTRAINT "reconciliation_findings_provider_kind_object_id_pk" PRIMARY KEY("provider","kind","object_id")
);
--> statement-breakpoint
CREATE TABLE "reconciliation_runs" (
	"provider" text NOT NULL,
	"id" text NOT NULL,
	"account" text NOT NULL,
	"trigger" text NOT NULL,
	"window_from" timestamp with time zone NOT NULL,
	"window_to" timestamp with time zone NOT NULL,
	"state" "reconciliation_state" DEFAULT 'running' NOT NULL,
	"phase" text NOT NULL,
	"cursor" text,
	"pages" integer DEFAULT 0 NOT NULL,
	"objects" integer DEFAULT 0 NOT NULL,
	"repaired" integer DEFAULT 0 NOT NULL,
	"error" text,
	"lease_owner" text,
	"lease_expires_at" timestamp with time zone,
	"started_at" timestamp with time zone DEFAULT now() NOT NULL,
	"finished_at" timestamp with time zone,
	CONSTRAINT "reconciliation_runs_provider_id_pk" PRIMARY KEY("provider","id")
);
--> statement-breakpoint
ALTER TABLE "attempts" ADD COLUMN "instruction" text;--> statement-breakpoint
ALTER TABLE "installation" ADD COLUMN "system_identifier" text;--> statement-breakpoint
ALTER TABLE "installation" ADD COLUMN "cluster_timeline" integer;--> statement-breakpoint
ALTER TABLE "installation" ADD COLUMN "recovering_since" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "installation" ADD COLUMN "recovery_reason" text;--> statement-breakpoint
ALTER TABLE "reviews" ADD COLUMN "resolution" text;--> statement-breakpoint
ALTER TABLE "reviews" ADD COLUMN "resolution_reason" text;--> statement-breakpoint
ALTER TABLE "reviews" ADD COLUMN "resolved_by" text;--> statement-breakpoint
ALTER TABLE "reviews" ADD COLUMN "resolved_at" timestamp with time zone;--> statement-breakpoint
CREATE INDEX "reconciliation_findings_open" ON "reconciliation_findings" USING btree ("last_seen_at") WHERE "reconciliation_findings"."state" = 'open';--> statement-breakpoint
CREATE INDEX "reconciliation_runs_open" ON "reconciliation_runs" USING btree ("started_at") WHERE "reconciliation_runs"."state" = 'running';
