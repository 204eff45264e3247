import { sql } from "drizzle-orm";
import {
  bigint,
  boolean,
  customType,
  foreignKey,
  index,
  integer,
  pgEnum,
  pgTable,
  primaryKey,
  text,
  timestamp,
  uniqueIndex,
} from "drizzle-orm/pg-core";

/**
 * `tenant_id` leads every primary key, unique key and foreign key, there are no triggers and no sequence that all
 * tenants share, so that the tables can be distributed by tenant as they are (docs/adr/0005). No other index starts
 * with it: on tables without statistics the planner would take such a one for a look-up by primary key, and scan a
 * whole tenant each time.
 */

export const moment = (name: string) => timestamp(name, { withTimezone: true, mode: "date" });
/** `json`, not `jsonb`: member order and number text stay as they were written. */
export const json = customType<{ data: unknown; driverData: string }>({
  dataType: () => "json",
  toDriver: (value) => JSON.stringify(value),
  fromDriver: (value) => (typeof value === "string" ? (JSON.parse(value) as unknown) : value),
});

export const paymentStatus = pgEnum("payment_status", [
  "processing",
  "requires_action",
  "authorized",
  "succeeded",
  "failed",
  "canceled",
  "needs_review",
]);

export const attemptState = pgEnum("attempt_state", [
  "started",
  "creating",
  "create_unknown",
  "charge_created",
  "confirming",
  "confirm_unknown",
  "following",
  "fencing",
  "completed",
  "sending",
  "send_unknown",
]);

export const attemptKind = pgEnum("attempt_kind", ["charge", "capture", "cancel", "refund"]);

export const keyState = pgEnum("idempotency_key_state", ["in_progress", "completed", "failed_retryable"]);

/** One row: what this installation is. Its secret derives attempt ids, so it must survive with the data (a dump has it). */
export const installation = pgTable("installation", {
  singleton: boolean("singleton").primaryKey().default(true),
  secret: text("secret").notNull(),
  createdAt: moment("created_at").notNull().defaultNow(),
  /** The cluster that the data was last seen in: another one means a restore or a failover. */
  systemIdentifier: text("system_identifier"),
  clusterTimeline: integer("cluster_timeline"),
  /** While set, workers only ask and new accepts are refused: what the provider knows is being taken in. */
  recoveringSince: moment("recovering_since"),
  recoveryReason: text("recovery_reason"),
});

/** Which provider account a credential belongs to, remembered so that a start does not depend on the provider. */
export const providerAccounts = pgTable(
  "provider_accounts",
  {
    provider: text("provider").notNull(),
    credentialDigest: text("credential_digest").notNull(),
    accountId: text("account_id").notNull(),
    seenAt: moment("seen_at").notNull().defaultNow(),
  },
  (t) => [primaryKey({ columns: [t.provider, t.credentialDigest] })],
);

export const tenants = pgTable("tenants", {
  id: text("id").primaryKey(),
  name: text("name").notNull(),
  createdAt: moment("created_at").notNull().defaultNow(),
});

export const apiKeys = pgTable(
  "api_keys",
  {
    tenantId: text("tenant_id")
      .notNull()
      .references(() => tenants.id),
    id: text("id").notNull(),
    /** Hex SHA-256 of the secret, which has 256 random bits. The secret itself is stored nowhere. */
    secretHash: text("secret_hash").notNull(),
    scopes: text("scopes").array().notNull(),
    livemode: boolean("livemode").notNull(),
    createdAt: moment("created_at").notNull().defaultNow(),
    revokedAt: moment("revoked_at"),
  },
  (t) => [primaryKey({ columns: [t.tenantId, t.id] })],
);

/** No lease: key, payment and attempt commit together, and it is the attempt that is leased, fenced and taken over. */
export const idempotencyKeys = pgTable(
  "idempotency_keys",
  {
    tenantId: text("tenant_id").notNull(),
    operation: text("operation").notNull(),
    key: text("key").notNull(),
    /** `v1:` + hex SHA-256. */
    fingerprint: text("fingerprint").notNull(),
    state: keyState("state").notNull().default("in_progress"),
    run: integer("run").notNull().default(1),
    resourceId: text("resource_id").notNull(),
    /** Of the request that the current run began with: part of the stored body. */
    requestId: text("request_id").notNull(),
    responseStatus: integer("response_status"),
    responseHeaders: json("response_headers"),
    responseBody: text("response_body"),
    createdAt: moment("created_at").notNull().defaultNow(),
    completedAt: moment("completed_at"),
    expiresAt: moment("expires_at"),
  },
  (t) => [
    primaryKey({ columns: [t.tenantId, t.operation, t.key] }),
    index("idempotency_keys_expiry").on(t.expiresAt).where(sql`${t.expiresAt} is not null`),
  ],
);

export const payments = pgTable(
  "payments",
  {
    tenantId: text("tenant_id").notNull(),
    id: text("id").notNull(),
    status: paymentStatus("status").notNull().default("processing"),
    /** The status of a payment that is neither on its way nor paid. Made by the database; see `payments_by_rare_status`. */
    rareStatus: paymentStatus("rare_status").generatedAlwaysAs(
      sql`case when status not in ('processing', 'succeeded') then status end`,
    ),
    version: integer("version").notNull().default(1),
    amount: bigint("amount", { mode: "number" }).notNull(),
    currency: text("currency").notNull(),
    captureMethod: text("capture_method").notNull(),
    paymentMethod: text("payment_method").notNull(),
    /** Of the charge: a look-up by its primary key. */
    attemptId: text("attempt_id").notNull(),
    customer: text("customer"),
    merchantOrderId: text("merchant_order_id"),
    holdsOrderId: boolean("holds_order_id").notNull(),
    description: text("description"),
    statementDescriptor: text("statement_descriptor"),
    returnUrl: text("return_url"),
    metadata: json("metadata").notNull(),
    provider: text("provider").notNull(),
    nextAction: json("next_action"),
    failure: json("failure"),
    amountCapturable: bigint("amount_capturable", { mode: "number" }).notNull().default(0),
    amountCaptured: bigint("amount_captured", { mode: "number" }).notNull().default(0),
    amountRefunded: bigint("amount_refunded", { mode: "number" }).notNull().default(0),
    /** The amounts of all refunds that have not failed: what the next refund is checked against, under this row's lock. */
    refundReserved: bigint("refund_reserved", { mode: "number" }).notNull().default(0),
    /** The attempt of the one capture or cancel that may be in flight. */
    openEffect: text("open_effect"),
    authorizedUntil: moment("authorized_until"),
    cancellationReason: text("cancellation_reason"),
    /** What the provider said of each dispute when it was last asked. Written under this row's lock. */
    disputes: json("disputes"),
    livemode: boolean("livemode").notNull(),
    createdAt: moment("created_at").notNull().defaultNow(),
    updatedAt: moment("updated_at").notNull().defaultNow(),
  },
  (t) => [
    primaryKey({ columns: [t.tenantId, t.id] }),
    index("payments_by_order_id")
      .on(t.merchantOrderId, t.tenantId, t.id)
      .where(sql`${t.merchantOrderId} is not null`),
    // Never over `status` itself, not even in a predicate: each payment that succeeds would then be written anew in
    // every index. Through a column that stays null on that way, PostgreSQL keeps the update within the row's page.
    index("payments_by_rare_status")
      .on(t.rareStatus, t.tenantId, t.id)
      .where(sql`${t.rareStatus} is not null`),
  ],
);

/**
 * Which payment holds an order id: what its uniqueness rests on, written together with `payments.holds_order_id`. A
 * table of its own, so that the look-up of every accept has a primary key and nothing else to be planned with.
 */
export const orderIds = pgTable(
  "order_ids",
  {
    tenantId: text("tenant_id").notNull(),
    merchantOrderId: text("merchant_order_id").notNull(),
    paymentId: text("payment_id").notNull(),
  },
  (t) => [primaryKey({ columns: [t.tenantId, t.merchantOrderId] })],
);

/** One external effect. `due_at` is null once nothing is left to do; the lease is the only thing that keeps others off. */
export const attempts = pgTable(
  "attempts",
  {
    tenantId: text("tenant_id").notNull(),
    id: text("id").notNull(),
    paymentId: text("payment_id").notNull(),
    kind: attemptKind("kind").notNull().default("charge"),
    operation: text("operation").notNull(),
    idempotencyKey: text("idempotency_key").notNull(),
    run: integer("run").notNull(),
    requestId: text("request_id").notNull(),
    /** Of a capture or refund: what was asked for. */
    amount: bigint("amount", { mode: "number" }),
    refundId: text("refund_id"),
    state: attemptState("state").notNull().default("started"),
    fence: bigint("fence", { mode: "number" }).notNull().default(0),
    leaseOwner: text("lease_owner"),
    leaseExpiresAt: moment("lease_expires_at"),
    dueAt: moment("due_at").defaultNow(),
    /** Somebody has heard news of it since it was claimed: it is due again as soon as its lease is given back. */
    nudged: boolean("nudged").notNull().default(false),
    provider: text("provider").notNull(),
    providerAccount: text("provider_account"),
    livemode: boolean("livemode").notNull(),
    parameters: text("parameters").notNull(),
    providerPaymentId: text("provider_payment_id"),
    unresolved: boolean("unresolved").notNull().default(false),
    keySpent: boolean("key_spent").notNull().default(false),
    createFirstSentAt: moment("create_first_sent_at"),
    confirmFirstSentAt: moment("confirm_first_sent_at"),
    fenceFirstSentAt: moment("fence_first_sent_at"),
    effectFirstSentAt: moment("effect_first_sent_at"),
    fenceRound: integer("fence_round").notNull().default(1),
    waits: integer("waits").notNull().default(0),
    waitReason: text("wait_reason"),
    unknownSince: moment("unknown_since"),
    /** What a person decided in a review: taken and cleared by the next worker that holds the attempt. */
    instruction: text("instruction"),
    createdAt: moment("created_at").notNull().defaultNow(),
  },
  (t) => [
    primaryKey({ columns: [t.tenantId, t.id] }),
    foreignKey({ columns: [t.tenantId, t.paymentId], foreignColumns: [payments.tenantId, payments.id] }),
    index("attempts_due").on(t.dueAt).where(sql`${t.dueAt} is not null`),
    index("attempts_by_object")
      .on(t.providerPaymentId, t.tenantId, t.id)
      .where(sql`${t.kind} = 'charge' and ${t.providerPaymentId} is not null`),
  ],
);

/** Append-only: every transition, every abnormal send and every question, with the provider's request id. */
export const timeline = pgTable(
  "timeline",
  {
    tenantId: text("tenant_id").notNull(),
    paymentId: text("payment_id").notNull(),
    id: text("id").notNull(),
    /** Set where the statuses are those of a refund. */
    refundId: text("refund_id"),
    at: moment("at").notNull().defaultNow(),
    kind: text("kind").notNull(),
    from: text("from_status"),
    to: text("to_status"),
    reason: text("reason").notNull(),
    attemptId: text("attempt_id"),
    call: text("call"),
    providerKey: text("provider_key"),
    fence: bigint("fence", { mode: "number" }),
    outcome: text("outcome"),
    providerRequestId: text("provider_request_id"),
    sentAt: moment("sent_at"),
  },
  (t) => [primaryKey({ columns: [t.tenantId, t.paymentId, t.id] })],
);

/** One row a fact, written in the fact's own transaction. */
export const outbox = pgTable(
  "outbox",
  {
    tenantId: text("tenant_id").notNull(),
    id: text("id").notNull(),
    type: text("type").notNull(),
    /** Null only for what concerns no payment. */
    paymentId: text("payment_id"),
    /** The payment's version that this fact made, and the fact's place among those of one write: their order. */
    sequence: integer("sequence").notNull().default(0),
    ordinal: integer("ordinal").notNull().default(0),
    data: json("data").notNull(),
    createdAt: moment("created_at").notNull().defaultNow(),
    /** Null until the relay has made its deliveries: a state and not a cursor, so no late commit is passed over. */
    relayedAt: moment("relayed_at"),
  },
  (t) => [
    primaryKey({ columns: [t.tenantId, t.id] }),
    index("outbox_unrelayed").on(t.createdAt).where(sql`${t.relayedAt} is null`),
  ],
);

/** What no machine may decide alone. At most one open review a payment; a later fact closes it. */
export const reviews = pgTable(
  "reviews",
  {
    tenantId: text("tenant_id").notNull(),
    id: text("id").notNull(),
    paymentId: text("payment_id").notNull(),
    attemptId: text("attempt_id").notNull(),
    /** What it is about at the provider, where that is not the attempt's own object; empty: the attempt itself. */
    objectId: text("object_id").notNull().default(""),
    /** The present one. */
    reason: text("reason").notNull(),
    /** Former reasons, the oldest first: `[{reason, until}]`. */
    history: json("history").notNull().default([]),
    openedAt: moment("opened_at").notNull().defaultNow(),
    closedAt: moment("closed_at"),
    /** `fact` or `person`. */
    closedBy: text("closed_by"),
    /** What a person decided; the attempt carries it out, and a fact may still come first. */
    resolution: text("resolution"),
    resolutionReason: text("resolution_reason"),
    /** The API key that decided, or `command-line`. */
    resolvedBy: text("resolved_by"),
    resolvedAt: moment("resolved_at"),
  },
  (t) => [
    primaryKey({ columns: [t.tenantId, t.id] }),
    uniqueIndex("reviews_open").on(t.tenantId, t.attemptId, t.objectId).where(sql`${t.closedAt} is null`),
  ],
);
