import { resetConnection, sendDamaged, sendResult } from "./answers.js";
import { errorBody, type WireError } from "./errors.js";
import type { Exchange } from "./exchange.js";
import type { Fault, FaultRule } from "./fault-rules.js";
import type { HeldRequests } from "./held-requests.js";
import type { Pipeline, Result, Ticket } from "./pipeline.js";

/** Carries out what a rule (or plain latency) says of one request. */
export class FaultRunner {
  readonly #pipeline: Pipeline;
  readonly #held: HeldRequests;

  constructor(pipeline: Pipeline, held: HeldRequests) {
    this.#pipeline = pipeline;
    this.#held = held;
  }

  run(exchange: Exchange, rule: FaultRule | null, latencyMs: number): void {
    const waitMs = latencyMs + (rule?.latency_ms ?? 0);
    if (rule === null) return this.#slow(exchange, waitMs);
    const { fault } = rule;
    exchange.entry.fault = { rule_id: rule.id, type: fault.type, effect: fault.effect };
    if (fault.type === "slow") return this.#slow(exchange, waitMs);
    if (waitMs === 0) return this.#apply(exchange, rule);
    setTimeout(() => this.#apply(exchange, rule), waitMs);
  }

  /** The request is at work all the while: its key is in use and its object locked. */
  #slow(exchange: Exchange, waitMs: number): void {
    const entered = this.#pipeline.enter(exchange);
    if ("ticket" in entered) exchange.entry.effect = pendingEffect(exchange);
    setTimeout(() => {
      sendResult(exchange, "result" in entered ? entered.result : this.#pipeline.execute(entered.ticket));
    }, waitMs);
  }

  #apply(exchange: Exchange, rule: FaultRule): void {
    const { fault } = rule;
    if (fault.type === "stored_error") return this.#storedError(exchange, rule);
    switch (fault.effect) {
      case "none":
        return this.#withoutEffect(exchange, rule);
      case "applied":
        return this.#answer(exchange, rule, this.#pipeline.run(exchange));
      case "later":
        return fault.arrival === "in_network"
          ? this.#inNetwork(exchange, rule)
          : this.#executing(exchange, rule);
    }
  }

  #withoutEffect(exchange: Exchange, rule: FaultRule): void {
    if (rule.fault.type !== "hang") return this.#answer(exchange, rule, null);
    const cut = (): void => resetConnection(exchange);
    this.#held.hold(exchange, rule, {
      stage: "answer",
      afterMs: rule.fault.hang_ms,
      proceed: cut,
      drop: cut,
    });
  }

  #inNetwork(exchange: Exchange, rule: FaultRule): void {
    const hangs = rule.fault.type === "hang";
    exchange.entry.effect = pendingEffect(exchange);
    if (!hangs) this.#answer(exchange, rule, null);
    this.#held.hold(exchange, rule, {
      stage: "in_network",
      afterMs: rule.fault.effect_after_ms,
      proceed: () => {
        exchange.entry.effect = "none";
        const result = this.#pipeline.run(exchange);
        if (hangs) sendResult(exchange, result);
      },
      drop: () => {
        exchange.entry.effect = "none";
        if (hangs) resetConnection(exchange);
      },
    });
  }

  #executing(exchange: Exchange, rule: FaultRule): void {
    const hangs = rule.fault.type === "hang";
    const entered = this.#pipeline.enter(exchange);
    if ("result" in entered) {
      if (hangs) sendResult(exchange, entered.result);
      else this.#answer(exchange, rule, entered.result);
      return;
    }
    exchange.entry.effect = pendingEffect(exchange);
    if (!hangs) this.#answer(exchange, rule, null);
    this.#held.hold(exchange, rule, {
      stage: "executing",
      afterMs: rule.fault.effect_after_ms,
      proceed: () => {
        const result = this.#pipeline.execute(entered.ticket);
        if (hangs) sendResult(exchange, result);
      },
      drop: () => {
        this.#pipeline.abandon(entered.ticket);
        if (hangs) resetConnection(exchange);
      },
    });
  }

  /** The first result under the key is an error: before the effect, after it, or with the effect still to come. */
  #storedError(exchange: Exchange, rule: FaultRule): void {
    const { fault } = rule;
    const entered = this.#pipeline.enter(exchange);
    if ("result" in entered) return sendResult(exchange, entered.result);
    const { ticket } = entered;
    const error = errorResult(exchange, fault);
    if (fault.effect === "applied") this.#pipeline.applyEffect(ticket);
    sendResult(exchange, this.#pipeline.conclude(ticket, error));
    if (fault.effect === "later") this.#effectAfterStoredError(exchange, rule, ticket);
  }

  #effectAfterStoredError(exchange: Exchange, rule: FaultRule, ticket: Ticket): void {
    exchange.entry.effect = pendingEffect(exchange);
    this.#held.hold(exchange, rule, {
      stage: "executing",
      afterMs: rule.fault.effect_after_ms,
      proceed: () => this.#pipeline.applyEffect(ticket),
      drop: () => {
        exchange.entry.effect = "none";
      },
    });
  }

  /** What the caller gets to see. `result` is null where the request has come to nothing (yet). */
  #answer(exchange: Exchange, rule: FaultRule, result: Result | null): void {
    const { fault } = rule;
    switch (fault.type) {
      case "reset":
        return resetConnection(exchange);
      case "error":
        return sendResult(exchange, errorResult(exchange, fault));
      case "hang": {
        const send = (): void => (result === null ? resetConnection(exchange) : sendResult(exchange, result));
        const drop = (): void => resetConnection(exchange);
        return this.#held.hold(exchange, rule, {
          stage: "answer",
          afterMs: fault.hang_ms,
          proceed: send,
          drop,
        });
      }
      default:
        return sendDamaged(exchange, fault, result);
    }
  }
}

function pendingEffect(exchange: Exchange): "pending" | "none" {
  return exchange.operation?.method === "POST" ? "pending" : "none";
}

interface ErrorDefaults {
  readonly type: string;
  readonly code?: string;
  readonly message: string;
}

/** What Stripe says with each status (docs.stripe.com/api/errors, docs.stripe.com/error-low-level). */
const ERROR_DEFAULTS: Readonly<Record<number, ErrorDefaults>> = {
  400: {
    type: "idempotency_error",
    message:
      "Keys for idempotent requests can only be used with the same parameters they were first used with.",
  },
  401: { type: "invalid_request_error", message: "Invalid API Key provided." },
  402: { type: "card_error", code: "card_declined", message: "Your card was declined." },
  403: { type: "invalid_request_error", message: "The provided key does not have the required permissions." },
  404: { type: "invalid_request_error", code: "resource_missing", message: "No such object." },
  409: {
    type: "idempotency_error",
    code: "idempotency_key_in_use",
    message: "There is currently another in-progress request using this Stripe-Idempotency-Key.",
  },
  424: {
    type: "api_error",
    message: "The request couldn't be completed due to a failure in an external dependency.",
  },
  429: { type: "invalid_request_error", code: "rate_limit", message: "Request rate limit exceeded." },
};

function errorResult(exchange: Exchange, fault: Fault): Result {
  const defaults = ERROR_DEFAULTS[fault.status] ?? {
    type: fault.status >= 500 ? "api_error" : "invalid_request_error",
    message: "An unknown error occurred.",
  };
  // A code of one's own stands for another error of that status, so the default code must not stay beside it.
  const code = fault.code ?? (fault.error_type === null ? defaults.code : undefined);
  const error = {
    type: fault.error_type ?? (fault.code === null ? defaults.type : typeForCode(fault, defaults)),
    message: fault.message ?? defaults.message,
    ...(code === undefined ? {} : { code }),
  } as WireError;
  exchange.entry.error_code ??= code ?? error.type;
  const headers: Record<string, string> = {};
  if (fault.retry_after !== null) headers["retry-after"] = String(fault.retry_after);
  if (code === "lock_timeout" || code === "idempotency_key_in_use") headers["stripe-should-retry"] = "true";
  return { status: fault.status, body: errorBody(error, exchange.requestId), headers };
}

function typeForCode(fault: Fault, defaults: ErrorDefaults): string {
  if (fault.status === 400) return "invalid_request_error";
  return fault.status === 409 && fault.code !== "idempotency_key_in_use"
    ? "invalid_request_error"
    : defaults.type;
}
