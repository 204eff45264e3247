import { createHash } from "node:crypto";
import type { Accounts, Caller } from "./accounts.js";
import type { Call, CallEnvironment } from "./call.js";
import type { SandboxClock } from "./clock.js";
import {
  errorBody,
  invalidRequest,
  keyInUse,
  keyMismatch,
  lockTimeout,
  resourceMissing,
  StripeFailure,
} from "./errors.js";
import type { Exchange } from "./exchange.js";
import { presented } from "./expand.js";
import { canonicalForm } from "./form.js";
import type { KeyRecord } from "./key-record.js";
import type { Operation } from "./operation.js";
import { refuseUnknown, textOf } from "./parameters.js";
import type { RequestLog } from "./request-log.js";
import type { Realm, Store } from "./store.js";

/** A key may be removed once it is this old (docs.stripe.com/api/idempotent_requests); the sandbox does so at once. */
const KEY_LIFETIME_MS = 24 * 60 * 60 * 1000;

// Two would do, since one comes in as they go; more let a moved clock take effect on the memory soon.
const KEYS_SWEPT_AT_ONCE = 10;

/** What a request came to: what goes out if nothing is done to the answer. */
export interface Result {
  readonly status: number;
  readonly body: object;
  readonly headers: Readonly<Record<string, string>>;
}

/** A request that has entered: it holds its key and its object until it is executed, concluded or abandoned. */
export interface Ticket {
  readonly exchange: Exchange;
  readonly operation: Operation;
  readonly caller: Caller;
  readonly realm: Realm;
  readonly claim: { readonly key: string; readonly record: KeyRecord } | null;
  readonly lock: string | null;
}

export type Entered = { readonly result: Result } | { readonly ticket: Ticket };

export interface PipelineParts {
  readonly store: Store;
  readonly accounts: Accounts;
  readonly clock: SandboxClock;
  readonly log: RequestLog;
  readonly environmentOf: (realm: Realm) => CallEnvironment;
  /** Lets everything happen whose time has come. */
  readonly catchUp: () => void;
}

/**
 * A request's way through the provider: authentication, key layer, parameter names, object lock, execution, and the first
 * result saved under the key. Everything is synchronous; only a fault or latency puts time between entering and execution.
 */
export class Pipeline {
  readonly #parts: PipelineParts;
  readonly #locks = new Set<string>();

  constructor(parts: PipelineParts) {
    this.#parts = parts;
  }

  run(exchange: Exchange): Result {
    const entered = this.enter(exchange);
    return "result" in entered ? entered.result : this.execute(entered.ticket);
  }

  /** Authentication, the key layer and the object lock, in this order. */
  enter(exchange: Exchange): Entered {
    this.#parts.catchUp();
    this.#parts.log.arrived(exchange.entry);
    try {
      const caller = this.#parts.accounts.authenticate(exchange.authorization);
      exchange.entry.account = caller.account;
      exchange.entry.livemode = caller.livemode;
      if (exchange.formError !== null) throw invalidRequest(exchange.formError);
      const { operation } = exchange;
      if (operation === null) throw unknownPath(exchange);
      if (caller.publishable && !operation.client) throw secretKeyRequired();
      const realm = this.#parts.store.realm(caller.realm);
      const replay = this.#replay(exchange, realm);
      if (replay !== null) return { result: replay };
      refuseUnknown(exchange.params, operation.known);
      if (caller.publishable) checkClientSecret(exchange, realm);
      const lock = lockOf(exchange, operation, realm);
      if (lock !== null && this.#locks.has(lock)) throw lockTimeout();
      return { ticket: this.#claim(exchange, operation, caller, realm, lock) };
    } catch (error) {
      return { result: this.#failed(exchange, error) };
    }
  }

  /** Runs the operation and makes its result the key's first, unless it is one that is not saved. */
  execute(ticket: Ticket): Result {
    const { exchange, operation } = ticket;
    let result: Result;
    let saved = true;
    this.#parts.catchUp();
    try {
      const call = this.callOf(ticket);
      result = { status: 200, body: presented(call, operation.run(call)), headers: {} };
    } catch (error) {
      saved = error instanceof StripeFailure && error.saved;
      result = this.#failed(exchange, error);
    }
    this.#settle(ticket, saved ? result : null);
    this.#noteEffect(ticket, result);
    return saved && exchange.idempotencyKey !== null && operation.method === "POST"
      ? withKeyHeaders(result, exchange)
      : result;
  }

  /** Saves this result as the key's first without running anything, or after the effect has been applied. */
  conclude(ticket: Ticket, result: Result): Result {
    this.#settle(ticket, result);
    ticket.exchange.entry.result_status = result.status;
    this.#parts.log.changed();
    return ticket.exchange.idempotencyKey === null ? result : withKeyHeaders(result, ticket.exchange);
  }

  /** The effect alone: state guard and change, with nothing saved under a key and nobody to answer. */
  applyEffect(ticket: Ticket): void {
    const { exchange } = ticket;
    let result: Result;
    this.#parts.catchUp();
    try {
      result = { status: 200, body: ticket.operation.run(this.callOf(ticket)), headers: {} };
    } catch (error) {
      result = this.#failed(exchange, error);
    }
    this.#parts.store.commit();
    this.#noteEffect(ticket, result);
  }

  /** The request died inside the provider without a result: its key and its object are free again. */
  abandon(ticket: Ticket): void {
    this.#settle(ticket, null);
    ticket.exchange.entry.effect = "none";
    this.#parts.log.changed();
  }

  callOf(ticket: Ticket): Call {
    const { exchange } = ticket;
    return {
      ...this.#parts.environmentOf(ticket.realm),
      caller: ticket.caller,
      params: exchange.params,
      objectId: exchange.objectId,
      requestId: exchange.requestId,
      idempotencyKey: exchange.idempotencyKey,
      stripeVersion: exchange.stripeVersion,
    };
  }

  resetLocks(): void {
    this.#locks.clear();
  }

  #replay(exchange: Exchange, realm: Realm): Result | null {
    const key = exchange.idempotencyKey;
    if (key === null || exchange.operation?.method !== "POST") return null;
    if (key.length > 255) throw invalidRequest("Idempotency keys must be at most 255 characters long.");
    const record = realm.keys.get(key);
    if (record === undefined) return null;
    if (record.answer !== null && this.#parts.clock.nowMs() - record.firstUsedMs >= KEY_LIFETIME_MS) {
      this.#parts.store.dropKey(realm, key);
      return null;
    }
    if (record.fingerprint !== fingerprintOf(exchange)) {
      throw keyMismatch(key, { first: record.path, now: exchange.path });
    }
    if (record.answer === null) throw keyInUse();
    exchange.entry.replayed = true;
    exchange.entry.result_status = record.answer.status;
    noteObject(exchange, record.answer.body);
    return {
      status: record.answer.status,
      body: record.answer.body,
      headers: {
        "idempotent-replayed": "true",
        "original-request": record.requestId,
        "stripe-should-retry": "false",
      },
    };
  }

  #claim(
    exchange: Exchange,
    operation: Operation,
    caller: Caller,
    realm: Realm,
    lock: string | null,
  ): Ticket {
    if (lock !== null) this.#locks.add(lock);
    const key = exchange.idempotencyKey;
    if (key === null || operation.method !== "POST")
      return { exchange, operation, caller, realm, claim: null, lock };
    this.#sweep(realm);
    const record: KeyRecord = {
      fingerprint: fingerprintOf(exchange),
      path: exchange.path,
      firstUsedMs: this.#parts.clock.nowMs(),
      requestId: exchange.requestId,
      answer: null,
    };
    realm.keys.set(key, record);
    return { exchange, operation, caller, realm, claim: { key, record }, lock };
  }

  /** Keys stand in the order of their first use, so the old ones are in front: each new one clears some away. */
  #sweep(realm: Realm): void {
    const olderThan = this.#parts.clock.nowMs() - KEY_LIFETIME_MS;
    let left = KEYS_SWEPT_AT_ONCE;
    for (const [key, record] of realm.keys) {
      if (left === 0 || record.answer === null || record.firstUsedMs > olderThan) return;
      this.#parts.store.dropKey(realm, key);
      left -= 1;
    }
  }

  #settle(ticket: Ticket, result: Result | null): void {
    const { store } = this.#parts;
    if (ticket.lock !== null) this.#locks.delete(ticket.lock);
    if (ticket.claim !== null) {
      const { key, record } = ticket.claim;
      if (result === null) ticket.realm.keys.delete(key);
      else
        store.saveKey(ticket.realm, key, { ...record, answer: { status: result.status, body: result.body } });
    }
    store.commit();
  }

  #noteEffect(ticket: Ticket, result: Result): void {
    const { entry } = ticket.exchange;
    const changed = result.status < 300 || result.status === 402;
    entry.result_status = result.status;
    entry.effect = ticket.operation.method === "POST" && changed ? "applied" : "none";
    noteObject(ticket.exchange, result.body);
    this.#parts.log.changed();
  }

  #failed(exchange: Exchange, error: unknown): Result {
    const failure = error instanceof StripeFailure ? error : unexpected(error);
    exchange.entry.error_code = failure.error.code ?? failure.error.type;
    exchange.entry.result_status = failure.status;
    if (failure.error.payment_intent !== undefined) noteObject(exchange, failure.error.payment_intent);
    return {
      status: failure.status,
      body: errorBody(failure.error, exchange.requestId),
      headers: failure.headers,
    };
  }
}

function withKeyHeaders(result: Result, exchange: Exchange): Result {
  const headers = {
    "original-request": exchange.requestId,
    "stripe-should-retry": "false",
    ...result.headers,
  };
  return { ...result, headers };
}

function fingerprintOf(exchange: Exchange): string {
  exchange.fingerprint ??= createHash("sha256")
    .update(`${exchange.method} ${exchange.path}\n${canonicalForm(exchange.params)}`)
    .digest("base64");
  return exchange.fingerprint;
}

/** The object in the path, or the one that the operation itself names; null for a read, or a create on its own. */
function lockOf(exchange: Exchange, operation: Operation, realm: Realm): string | null {
  if (operation.method !== "POST") return null;
  const id = exchange.objectId ?? operation.locks?.({ params: exchange.params, realm }) ?? null;
  return id === null ? null : `${realm.name}/${id}`;
}

function noteObject(exchange: Exchange, body: object): void {
  if (exchange.objectId === null && "id" in body && typeof body.id === "string")
    exchange.entry.object_id = body.id;
}

function checkClientSecret(exchange: Exchange, realm: Realm): void {
  const id = exchange.objectId ?? "";
  const secret = textOf(exchange.params, "client_secret");
  if (secret === null)
    throw invalidRequest("Missing required param: client_secret.", "parameter_missing", "client_secret");
  const paymentIntent = realm.paymentIntents.get(id);
  if (paymentIntent === undefined) throw resourceMissing(404, "payment_intent", id, "intent");
  if (paymentIntent.client_secret !== secret) {
    throw invalidRequest(
      "The client_secret provided does not match any associated PaymentIntent on this account.",
      "payment_intent_invalid_parameter",
      "client_secret",
    );
  }
}

function secretKeyRequired(): StripeFailure {
  return new StripeFailure(403, {
    type: "invalid_request_error",
    code: "secret_key_required",
    message: "This API call cannot be made with a publishable API key. Please use a secret API key.",
  });
}

function unknownPath(exchange: Exchange): StripeFailure {
  return new StripeFailure(404, {
    type: "invalid_request_error",
    message: `Unrecognized request URL (${exchange.method}: ${exchange.path}). The sandbox has only a part of Stripe's API.`,
  });
}

// A bug of the sandbox must not look like an answer of the provider's: it goes out as a 500 with its own message.
function unexpected(error: unknown): StripeFailure {
  const text = error instanceof Error ? error.message : "unknown";
  return new StripeFailure(500, { type: "api_error", message: `The sandbox failed: ${text}` });
}
