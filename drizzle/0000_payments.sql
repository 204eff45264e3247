-- The first schema: tenants and their keys, payments with their attempts, and what each commit leaves behind.
-- Generated from src/store/schema.ts, where each table says what it is for. tenant_id leads every key; there are no
-- triggers and no sequences, so that the tables can be distributed by tenant (docs/adr/0005). Only what is still open is
-- indexed beside the primary keys: due attempts, keys that expire, open reviews.
CREATE TYPE "public"."attempt_state" AS ENUM('started', 'creating', 'create_unknown', 'charge_created', 'confirming', 'confirm_unknown', 'following', 'fencing', 'completed');--> statement-breakpoint
CREATE TYPE "public"."idempotency_key_state" AS ENUM('in_progress', 'completed', 'failed_retryable');--> statement-breakpoint
CREATE TYPE "public"."payment_status" AS ENUM('processing', 'requires_action', 'authorized', 'succeeded', 'failed', 'canceled', 'needs_review');--> statement-breakpoint
CREATE TABLE "api_keys" (
	"tenant_id" text NOT NULL,
	"id" text NOT NULL,
	"secret_hash" text NOT NULL,
	"scopes" text[] NOT NULL,
	"livemode" boolean NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"revoked_at" timestamp with time zone,
	CONSTRAINT "api_keys_tenant_id_id_pk" PRIMARY KEY("tenant_id","id")
);
--> statement-breakpoint
CREATE TABLE "attempts" (
	"tenant_id" text NOT NULL,
	"id" text NOT NULL,
	"payment_id" text NOT NULL,
	"operation" text NOT NULL,
	"idempotency_key" text NOT NULL,
	"run" integer NOT NULL,
	"request_id" text NOT NULL,
	"state" "attempt_state" DEFAULT 'started' NOT NULL,
	"fence" bigint DEFAULT 0 NOT NULL,
	"lease_owner" text,
	"lease_expires_at" timestamp with time zone,
	"due_at" timestamp with time zone DEFAULT now(),
	"provider" text NOT NULL,
	"provider_account" text,
	"livemode" boolean NOT NULL,
	"parameters" text NOT NULL,
	"provider_payment_id" text,
	"unresolved" boolean DEFAULT false NOT NULL,
	"key_spent" boolean DEFAULT false NOT NULL,
	"create_first_sent_at" timestamp with time zone,
	"confirm_first_sent_at" timestamp with time zone,
	"fence_first_sent_at" timestamp with time zone,
	"fence_round" integer DEFAULT 1 NOT NULL,
	"waits" integer DEFAULT 0 NOT NULL,
	"wait_reason" text,
	"unknown_since" timestamp with time zone,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "attempts_tenant_id_id_pk" PRIMARY KEY("tenant_id","id")
);
--> statement-breakpoint
CREATE TABLE "idempotency_keys" (
	"tenant_id" text NOT NULL,
	"operation" text NOT NULL,
	"key" text NOT NULL,
	"fingerprint" text NOT NULL,
	"state" "idempotency_key_state" DEFAULT 'in_progress' NOT NULL,
	"run" integer DEFAULT 1 NOT NULL,
	"resource_id" text NOT NULL,
	"request_id" text NOT NULL,
	"response_status" integer,
	"response_headers" json,
	"response_body" text,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"completed_at" timestamp with time zone,
	"expires_at" timestamp with time zone,
	CONSTRAINT "idempotency_keys_tenant_id_operation_key_pk" PRIMARY KEY("tenant_id","operation","key")
);
--> statement-breakpoint
CREATE TABLE "installation" (
	"singleton" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"secret" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "order_ids" (
	"tenant_id" text NOT NULL,
	"merchant_order_id" text NOT NULL,
	"payment_id" text NOT NULL,
	CONSTRAINT "order_ids_tenant_id_merchant_order_id_pk" PRIMARY KEY("tenant_id","merchant_order_id")
);
--> statement-breakpoint
CREATE TABLE "outbox" (
	"tenant_id" text NOT NULL,
	"id" text NOT NULL,
	"type" text NOT NULL,
	"payment_id" text NOT NULL,
	"data" json NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "outbox_tenant_id_id_pk" PRIMARY KEY("tenant_id","id")
);
--> statement-breakpoint
CREATE TABLE "payments" (
	"tenant_id" text NOT NULL,
	"id" text NOT NULL,
	"status" "payment_status" DEFAULT 'processing' NOT NULL,
	"version" integer DEFAULT 1 NOT NULL,
	"amount" bigint NOT NULL,
	"currency" text NOT NULL,
	"capture_method" text NOT NULL,
	"payment_method" text NOT NULL,
	"attempt_id" text NOT NULL,
	"customer" text,
	"merchant_order_id" text,
	"holds_order_id" boolean NOT NULL,
	"description" text,
	"statement_descriptor" text,
	"return_url" text,
	"metadata" json NOT NULL,
	"provider" text NOT NULL,
	"next_action" json,
	"failure" json,
	"amount_capturable" bigint DEFAULT 0 NOT NULL,
	"amount_captured" bigint DEFAULT 0 NOT NULL,
	"amount_refunded" bigint DEFAULT 0 NOT NULL,
	"livemode" boolean NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "payments_tenant_id_id_pk" PRIMARY KEY("tenant_id","id")
);
--> statement-breakpoint
CREATE TABLE "provider_accounts" (
	"provider" text NOT NULL,
	"credential_digest" text NOT NULL,
	"account_id" text NOT NULL,
	"seen_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "provider_accounts_provider_credential_digest_pk" PRIMARY KEY("provider","credential_digest")
);
--> statement-breakpoint
CREATE TABLE "reviews" (
	"tenant_id" text NOT NULL,
	"id" text NOT NULL,
	"payment_id" text NOT NULL,
	"attempt_id" text NOT NULL,
	"reason" text NOT NULL,
	"opened_at" timestamp with time zone DEFAULT now() NOT NULL,
	"closed_at" timestamp with time zone,
	"closed_by" text,
	CONSTRAINT "reviews_tenant_id_id_pk" PRIMARY KEY("tenant_id","id")
);
--> statement-breakpoint
CREATE TABLE "tenants" (
	"id" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "timeline" (
	"tenant_id" text NOT NULL,
	"payment_id" text NOT NULL,
	"id" text NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	"kind" text NOT NULL,
	"from_status" text,
	"to_status" text,
	"reason" text NOT NULL,
	"attempt_id" text,
	"call" text,
	"provider_key" text,
	"fence" bigint,
	"outcome" text,
	"provider_request_id" text,
	"sent_at" timestamp with time zone,
	CONSTRAINT "timeline_tenant_id_payment_id_id_pk" PRIMARY KEY("tenant_id","payment_id","id")
);
--> statement-breakpoint
ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_tenant_id_tenants_id_fk" FOREIGN KEY ("tenant_id") REFERENCES "public"."tenants"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "attempts" ADD CONSTRAINT "attempts_tenant_id_payment_id_payments_tenant_id_id_fk" FOREIGN KEY ("tenant_id","payment_id") REFERENCES "public"."payments"("tenant_id","id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "attempts_due" ON "attempts" USING btree ("due_at") WHERE "attempts"."due_at" is not null;--> statement-breakpoint
CREATE INDEX "idempotency_keys_expiry" ON "idempotency_keys" USING btree ("expires_at") WHERE "idempotency_keys"."expires_at" is not null;--> statement-breakpoint
CREATE INDEX "payments_by_order_id" ON "payments" USING btree ("merchant_order_id","tenant_id","id") WHERE "payments"."merchant_order_id" is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "reviews_open" ON "reviews" USING btree ("tenant_id","payment_id") WHERE "reviews"."closed_at" is null;