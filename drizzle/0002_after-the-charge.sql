-- What follows a charge: refunds, captures and cancels as attempts of their own kinds, events from and to the outside,
-- and the ledger.
--
-- * attempts.kind: every row that stands is a charge. A capture, cancel or refund reuses the claim, the lease, the fence
--   and the due time of the same table; `sending` and `send_unknown` are the states of these single-call effects.
-- * payments.refund_reserved, .open_effect: decided under the payment row's lock, so that refunds which race never
--   exceed what was captured and one capture or cancel is in flight at a time.
-- * outbox.relayed_at is a state and not a cursor: a fact that commits late is never passed over. What was written
--   before there were endpoints concerns none of them.
-- * ledger_entries is insert-only and its key is the fact: nothing posts twice. ledger_uncounted names the entries that
--   ledger_balances does not contain yet, so no payment waits for a balance's row.
-- * provider_events and deliveries: `due_at` is also the lease, pushed forward by the claim.
CREATE TYPE "public"."delivery_state" AS ENUM('pending', 'delivered', 'failed');--> statement-breakpoint
CREATE TYPE "public"."provider_event_state" AS ENUM('pending', 'applied', 'parked');--> statement-breakpoint
CREATE TYPE "public"."refund_status" AS ENUM('processing', 'succeeded', 'failed', 'needs_review');--> statement-breakpoint
CREATE TYPE "public"."attempt_kind" AS ENUM('charge', 'capture', 'cancel', 'refund');--> statement-breakpoint
ALTER TYPE "public"."attempt_state" ADD VALUE 'sending';--> statement-breakpoint
ALTER TYPE "public"."attempt_state" ADD VALUE 'send_unknown';--> statement-breakpoint
CREATE TABLE "deliveries" (
	"tenant_id" text NOT NULL,
	"endpoint_id" text NOT NULL,
	"event_id" text NOT NULL,
	"payment_id" text,
	"sequence" integer NOT NULL,
	"ordinal" integer NOT NULL,
	"state" "delivery_state" DEFAULT 'pending' NOT NULL,
	"tries" integer DEFAULT 0 NOT NULL,
	"due_at" timestamp with time zone DEFAULT now(),
	"last_tried_at" timestamp with time zone,
	"last_status" integer,
	"last_error" text,
	"last_answer" text,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"delivered_at" timestamp with time zone,
	CONSTRAINT "deliveries_tenant_id_endpoint_id_event_id_pk" PRIMARY KEY("tenant_id","endpoint_id","event_id")
);
--> statement-breakpoint
CREATE TABLE "provider_events" (
	"provider" text NOT NULL,
	"event_id" text NOT NULL,
	"type" text NOT NULL,
	"livemode" boolean NOT NULL,
	"object_id" text NOT NULL,
	"payload" text NOT NULL,
	"state" "provider_event_state" DEFAULT 'pending' NOT NULL,
	"tries" integer DEFAULT 0 NOT NULL,
	"due_at" timestamp with time zone DEFAULT now(),
	"outcome" text,
	"received_at" timestamp with time zone DEFAULT now() NOT NULL,
	"applied_at" timestamp with time zone,
	CONSTRAINT "provider_events_provider_event_id_pk" PRIMARY KEY("provider","event_id")
);
--> statement-breakpoint
CREATE TABLE "webhook_endpoints" (
	"tenant_id" text NOT NULL,
	"id" text NOT NULL,
	"url" text NOT NULL,
	"events" json,
	"secret" text NOT NULL,
	"previous_secret" text,
	"previous_secret_expires_at" timestamp with time zone,
	"enabled" boolean DEFAULT true NOT NULL,
	"disabled_reason" text,
	"failing_since" timestamp with time zone,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "webhook_endpoints_tenant_id_id_pk" PRIMARY KEY("tenant_id","id")
);
--> statement-breakpoint
CREATE TABLE "ledger_balances" (
	"tenant_id" text NOT NULL,
	"currency" text NOT NULL,
	"account" text NOT NULL,
	"debits" numeric(30, 0) NOT NULL,
	"credits" numeric(30, 0) NOT NULL,
	CONSTRAINT "ledger_balances_tenant_id_currency_account_pk" PRIMARY KEY("tenant_id","currency","account")
);
--> statement-breakpoint
CREATE TABLE "ledger_entries" (
	"tenant_id" text NOT NULL,
	"payment_id" text NOT NULL,
	"fact" text NOT NULL,
	"leg" integer NOT NULL,
	"currency" text NOT NULL,
	"debit_account" text NOT NULL,
	"credit_account" text NOT NULL,
	"amount" bigint NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "ledger_entries_tenant_id_payment_id_fact_leg_pk" PRIMARY KEY("tenant_id","payment_id","fact","leg")
);
--> statement-breakpoint
CREATE TABLE "ledger_uncounted" (
	"tenant_id" text NOT NULL,
	"payment_id" text NOT NULL,
	"fact" text NOT NULL,
	"leg" integer NOT NULL,
	"currency" text NOT NULL,
	"debit_account" text NOT NULL,
	"credit_account" text NOT NULL,
	"amount" bigint NOT NULL,
	CONSTRAINT "ledger_uncounted_tenant_id_payment_id_fact_leg_pk" PRIMARY KEY("tenant_id","payment_id","fact","leg")
);
--> statement-breakpoint
CREATE TABLE "refunds" (
	"tenant_id" text NOT NULL,
	"id" text NOT NULL,
	"payment_id" text NOT NULL,
	"attempt_id" text NOT NULL,
	"status" "refund_status" DEFAULT 'processing' NOT NULL,
	"version" integer DEFAULT 1 NOT NULL,
	"amount" bigint NOT NULL,
	"currency" text NOT NULL,
	"reason" text,
	"metadata" json NOT NULL,
	"provider" text NOT NULL,
	"provider_refund_id" text,
	"failure" json,
	"external" boolean DEFAULT false NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "refunds_tenant_id_id_pk" PRIMARY KEY("tenant_id","id")
);
--> statement-breakpoint
ALTER TABLE "outbox" ALTER COLUMN "payment_id" DROP NOT NULL;--> statement-breakpoint
ALTER TABLE "attempts" ADD COLUMN "kind" "attempt_kind" DEFAULT 'charge' NOT NULL;--> statement-breakpoint
ALTER TABLE "attempts" ADD COLUMN "amount" bigint;--> statement-breakpoint
ALTER TABLE "attempts" ADD COLUMN "refund_id" text;--> statement-breakpoint
ALTER TABLE "attempts" ADD COLUMN "nudged" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "attempts" ADD COLUMN "effect_first_sent_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "outbox" ADD COLUMN "sequence" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "outbox" ADD COLUMN "ordinal" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "outbox" ADD COLUMN "relayed_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "payments" ADD COLUMN "refund_reserved" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "payments" ADD COLUMN "open_effect" text;--> statement-breakpoint
ALTER TABLE "payments" ADD COLUMN "authorized_until" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "payments" ADD COLUMN "cancellation_reason" text;--> statement-breakpoint
ALTER TABLE "payments" ADD COLUMN "disputes" json;--> statement-breakpoint
ALTER TABLE "timeline" ADD COLUMN "refund_id" text;--> statement-breakpoint
ALTER TABLE "refunds" ADD CONSTRAINT "refunds_tenant_id_payment_id_payments_tenant_id_id_fk" FOREIGN KEY ("tenant_id","payment_id") REFERENCES "public"."payments"("tenant_id","id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "deliveries_due" ON "deliveries" USING btree ("endpoint_id","due_at") WHERE "deliveries"."due_at" is not null;--> statement-breakpoint
CREATE INDEX "deliveries_ended" ON "deliveries" USING btree ("created_at") WHERE "deliveries"."due_at" is null;--> statement-breakpoint
CREATE INDEX "deliveries_waiting" ON "deliveries" USING btree ("payment_id","endpoint_id","tenant_id") WHERE "deliveries"."state" = 'pending';--> statement-breakpoint
CREATE INDEX "provider_events_due" ON "provider_events" USING btree ("due_at") WHERE "provider_events"."due_at" is not null;--> statement-breakpoint
CREATE INDEX "provider_events_parked" ON "provider_events" USING btree ("received_at") WHERE "provider_events"."state" = 'parked';--> statement-breakpoint
CREATE INDEX "provider_events_applied" ON "provider_events" USING btree ("applied_at") WHERE "provider_events"."state" = 'applied';--> statement-breakpoint
CREATE INDEX "refunds_by_payment" ON "refunds" USING btree ("payment_id","tenant_id","id");--> statement-breakpoint
CREATE INDEX "attempts_by_object" ON "attempts" USING btree ("provider_payment_id","tenant_id","id") WHERE "attempts"."kind" = 'charge' and "attempts"."provider_payment_id" is not null;--> statement-breakpoint
CREATE INDEX "outbox_unrelayed" ON "outbox" USING btree ("created_at") WHERE "outbox"."relayed_at" is null;--> statement-breakpoint
UPDATE "outbox" SET "relayed_at" = "created_at";
