import { randomBytes } from "node:crypto";
import { PawlError } from "../domain/errors.js";
import { type WebhookEndpoint, webhookEndpointDocument, webhookEndpointPath } from "../domain/webhook.js";
import { newId } from "../lib/ids.js";
import { withDatabase } from "../store/db.js";
import * as store from "../store/webhook-endpoints.js";
import type { Caller, Deps } from "./deps.js";
import type { KeyedAnswer, KeyedCall } from "./keyed-request.js";
import { type KeyedEffect, keyedWrite } from "./keyed-write.js";

export const CREATE_WEBHOOK_ENDPOINT = "webhook_endpoints.create";
export const ROTATE_WEBHOOK_SECRET = "webhook_endpoints.rotate_secret";
export const ENABLE_WEBHOOK_ENDPOINT = "webhook_endpoints.enable";

/**
 * Each event is sent to each of them: nobody needs more, and more would let one request become any number. Requests that
 * are counted at the same moment may together pass it by a few, which does no harm.
 */
const MOST_ENDPOINTS = 50;
/** Standard Webhooks, "Signature scheme": from 24 to 64 bytes. */
const SECRET_BYTES = 32;
/** What is made due at once when an endpoint is enabled; a longer backlog comes as it was to come. */
const MOST_HASTENED = 10_000;

type Doing = Pick<Deps, "db" | "settings" | "webhooks">;

export interface WebhookEndpointInput {
  readonly url: string;
  /** Null: all types. Sorted, none twice. */
  readonly events: readonly string[] | null;
}

/**
 * Throws PawlError validation_failed, with one text whatever is wrong with the URL: the answer must not tell which names
 * and addresses there are. Nothing is connected to.
 */
export function createWebhookEndpoint(
  deps: Doing,
  call: KeyedCall,
  input: WebhookEndpointInput,
): Promise<KeyedAnswer> {
  const id = newId("we");
  return keyedWrite(deps, {
    ...call,
    operation: CREATE_WEBHOOK_ENDPOINT,
    pathIds: [],
    input,
    resourceId: id,
    check: async () => {
      if (!(await deps.webhooks.mayTarget(input.url))) {
        throw refused("/url", "must be an https URL of a public host");
      }
    },
    prepare: async () => {
      const { sql } = deps.db;
      const { tenantId } = call.caller;
      const { endpoints, at } = await store.countEndpoints(sql, tenantId);
      if (endpoints >= MOST_ENDPOINTS) {
        throw refused("", `a tenant has at most ${MOST_ENDPOINTS} webhook endpoints; delete one first`);
      }
      const secret = newSecret();
      const change = store.insertingEndpoint(sql, { tenantId, id, ...input, secret, at });
      return shownOnce(201, newEndpoint({ tenantId, id, ...input }, new Date(at)), secret, change);
    },
  });
}

/** Makes a new secret; the one until now signs beside it while the overlap lasts. Throws PawlError not_found. */
export function rotateWebhookSecret(deps: Doing, call: KeyedCall, endpointId: string): Promise<KeyedAnswer> {
  const name = { tenantId: call.caller.tenantId, id: endpointId };
  return keyedWrite(deps, {
    ...call,
    operation: ROTATE_WEBHOOK_SECRET,
    pathIds: [endpointId],
    input: {},
    resourceId: endpointId,
    prepare: async () => {
      const { sql } = deps.db;
      const read = found(await store.readForChange(sql, name));
      const secret = newSecret();
      const now = new Date(read.at);
      const previousExpiresAt = new Date(now.getTime() + deps.settings.webhookSecretOverlapMs);
      const change = store.rotatingSecret(sql, read, { secret, previousExpiresAt });
      const after = { ...read.endpoint, previousSecretExpiresAt: previousExpiresAt, updatedAt: now };
      return shownOnce(200, after, secret, change);
    },
  });
}

/** Puts a disabled endpoint to use again; what waited for it is due at once. Throws PawlError not_found. */
export function enableWebhookEndpoint(
  deps: Doing,
  call: KeyedCall,
  endpointId: string,
): Promise<KeyedAnswer> {
  const name = { tenantId: call.caller.tenantId, id: endpointId };
  return keyedWrite(deps, {
    ...call,
    operation: ENABLE_WEBHOOK_ENDPOINT,
    pathIds: [endpointId],
    input: {},
    resourceId: endpointId,
    prepare: async () => {
      const { sql } = deps.db;
      const read = found(await store.readForChange(sql, name));
      const change = store.enablingEndpoint(sql, read, MOST_HASTENED);
      const document = webhookEndpointDocument({
        ...read.endpoint,
        enabled: true,
        disabledReason: null,
        failingSince: null,
        updatedAt: new Date(read.at),
      });
      return { status: 200, location: webhookEndpointPath(endpointId), document, change };
    },
  });
}

/** Nothing more is sent to it. Throws PawlError not_found, for one that has been deleted too. */
export async function deleteWebhookEndpoint(
  deps: Pick<Deps, "db">,
  caller: Caller,
  endpointId: string,
): Promise<void> {
  const name = { tenantId: caller.tenantId, id: endpointId };
  if (!(await withDatabase(() => store.deleteEndpoint(deps.db.sql, name)))) throw absent();
}

function newSecret(): string {
  return `whsec_${randomBytes(SECRET_BYTES).toString("base64")}`;
}

function newEndpoint(
  made: Pick<WebhookEndpoint, "tenantId" | "id" | "url" | "events">,
  at: Date,
): WebhookEndpoint {
  return {
    ...made,
    enabled: true,
    disabledReason: null,
    failingSince: null,
    previousSecretExpiresAt: null,
    createdAt: at,
    updatedAt: at,
  };
}

function shownOnce(
  status: number,
  endpoint: WebhookEndpoint,
  secret: string,
  change: KeyedEffect["change"],
): KeyedEffect {
  const document = webhookEndpointDocument(endpoint);
  return { status, location: webhookEndpointPath(endpoint.id), document, shownOnce: { secret }, change };
}

function found(read: store.ReadEndpoint | null): store.ReadEndpoint {
  if (read === null) throw absent();
  return read;
}

function absent(): PawlError {
  return new PawlError("not_found", "There is no webhook endpoint with this id.");
}

function refused(pointer: string, detail: string): PawlError {
  return new PawlError("validation_failed", "The request is not valid; see `errors`.", {
    faults: [{ pointer, detail }],
  });
}
