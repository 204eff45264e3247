import { sql } from "drizzle-orm";
import { boolean, index, integer, pgEnum, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { json, moment } from "./schema.js";

export const providerEventState = pgEnum("provider_event_state", ["pending", "applied", "parked"]);

/** The inbox: what the provider told, stored before it was told that we have it. Unique on provider and event id. */
export const providerEvents = pgTable(
  "provider_events",
  {
    provider: text("provider").notNull(),
    eventId: text("event_id").notNull(),
    type: text("type").notNull(),
    livemode: boolean("livemode").notNull(),
    objectId: text("object_id").notNull(),
    /** The raw body, byte for byte. */
    payload: text("payload").notNull(),
    state: providerEventState("state").notNull().default("pending"),
    tries: integer("tries").notNull().default(0),
    /** When it is tried next; null once applied or parked. Pushed forward by the claim, which is its lease. */
    dueAt: moment("due_at").defaultNow(),
    /** What the last try came to. */
    outcome: text("outcome"),
    receivedAt: moment("received_at").notNull().defaultNow(),
    appliedAt: moment("applied_at"),
  },
  (t) => [
    primaryKey({ columns: [t.provider, t.eventId] }),
    index("provider_events_due").on(t.dueAt).where(sql`${t.dueAt} is not null`),
    index("provider_events_parked").on(t.receivedAt).where(sql`${t.state} = 'parked'`),
    index("provider_events_applied").on(t.appliedAt).where(sql`${t.state} = 'applied'`),
  ],
);

export const webhookEndpoints = pgTable(
  "webhook_endpoints",
  {
    tenantId: text("tenant_id").notNull(),
    id: text("id").notNull(),
    url: text("url").notNull(),
    /** Event types, or null: all of them. */
    events: json("events"),
    secret: text("secret").notNull(),
    /** Signs beside `secret` until it expires. */
    previousSecret: text("previous_secret"),
    previousSecretExpiresAt: moment("previous_secret_expires_at"),
    enabled: boolean("enabled").notNull().default(true),
    disabledReason: text("disabled_reason"),
    /** Since when nothing has arrived; null after every success. */
    failingSince: moment("failing_since"),
    createdAt: moment("created_at").notNull().defaultNow(),
    updatedAt: moment("updated_at").notNull().defaultNow(),
  },
  (t) => [primaryKey({ columns: [t.tenantId, t.id] })],
);

export const deliveryState = pgEnum("delivery_state", ["pending", "delivered", "failed"]);

/** One event on its way to one endpoint, or to the broker. Its order is the event's. */
export const deliveries = pgTable(
  "deliveries",
  {
    tenantId: text("tenant_id").notNull(),
    endpointId: text("endpoint_id").notNull(),
    eventId: text("event_id").notNull(),
    paymentId: text("payment_id"),
    sequence: integer("sequence").notNull(),
    ordinal: integer("ordinal").notNull(),
    state: deliveryState("state").notNull().default("pending"),
    tries: integer("tries").notNull().default(0),
    /** When it is tried next; null once it has ended. Pushed forward by the claim, which is its lease. */
    dueAt: moment("due_at").defaultNow(),
    lastTriedAt: moment("last_tried_at"),
    lastStatus: integer("last_status"),
    lastError: text("last_error"),
    /** The beginning of the receiver's answer. */
    lastAnswer: text("last_answer"),
    createdAt: moment("created_at").notNull().defaultNow(),
    deliveredAt: moment("delivered_at"),
  },
  (t) => [
    primaryKey({ columns: [t.tenantId, t.endpointId, t.eventId] }),
    // The claim goes endpoint by endpoint, so that one with a long backlog costs the others nothing.
    index("deliveries_due").on(t.endpointId, t.dueAt).where(sql`${t.dueAt} is not null`),
    index("deliveries_ended").on(t.createdAt).where(sql`${t.dueAt} is null`),
    index("deliveries_waiting").on(t.paymentId, t.endpointId, t.tenantId).where(sql`${t.state} = 'pending'`),
  ],
);
