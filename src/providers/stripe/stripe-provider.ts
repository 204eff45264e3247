import { createHash } from "node:crypto";
import Stripe from "stripe";
import type { PaymentInput } from "../../domain/payment.js";
import type {
  AccountOutcome,
  LookupOutcome,
  PaymentProvider,
  PreparedCharge,
  ProviderCall,
  SendContext,
  SendOutcome,
} from "../../domain/provider.js";
import type { Logger } from "../../lib/log.js";
import { prepareChargeParameters, readChargeParameters } from "./charge-parameters.js";
import { classifySend, lookupRow } from "./classify-error.js";
import { type FindReference, findCharge } from "./find-charge.js";
import { DeadlineHttpClient } from "./http-client.js";
import { isFields, toProviderCharge } from "./outcome.js";
import { deadlinePassed, readAnswer, text, type WireAnswer } from "./wire-answer.js";

export interface StripeProviderOptions {
  /** `sk_…` or `rk_…`; its prefix tells the mode. */
  readonly secretKey: string;
  /** Scheme, host and port of another server that speaks Stripe's API; null: Stripe's own. */
  readonly apiBase: string | null;
  /** The deadline over each method, whatever number of requests it makes. */
  readonly timeoutMs: number;
  readonly log: Logger;
}

/** `close` destroys the connections that are kept alive. */
export type StripeProvider = PaymentProvider & { close(): void };

/** Throws where `apiBase` is no bare origin of http or https. */
export function createStripeProvider(options: StripeProviderOptions): StripeProvider {
  return new StripeAdapter(options);
}

// Bound to this use, so that the digest of a key that leaks elsewhere cannot be looked up here.
const DIGEST_LABEL = "pawl/stripe/credential/v1:";
const LIVE_KEY = /^[sr]k_live_/;
// The fallback identity's length in hex digits.
const KEY_IDENTITY_LENGTH = 16;

type PaymentIntentAnswer = Promise<{ readonly lastResponse: unknown }>;

class StripeAdapter implements StripeProvider {
  readonly name = "stripe";
  readonly livemode: boolean;
  readonly credentialDigest: string;
  readonly #stripe: Stripe;
  readonly #http = new DeadlineHttpClient();
  readonly #timeoutMs: number;
  readonly #log: Logger;
  #account: Promise<AccountOutcome> | null = null;

  constructor({ secretKey, apiBase, timeoutMs, log }: StripeProviderOptions) {
    this.livemode = LIVE_KEY.test(secretKey);
    this.credentialDigest = createHash("sha256").update(DIGEST_LABEL).update(secretKey).digest("hex");
    this.#timeoutMs = timeoutMs;
    this.#log = log;
    this.#stripe = new Stripe(secretKey, {
      ...(apiBase === null ? {} : addressOf(apiBase)),
      apiVersion: Stripe.API_VERSION,
      httpClient: this.#http,
      maxNetworkRetries: 0,
      telemetry: false,
      timeout: timeoutMs,
    });
  }

  close(): void {
    this.#http.close();
  }

  prepareCharge(input: PaymentInput, reference: { attemptId: string; tenantId: string }): PreparedCharge {
    return prepareChargeParameters(input, reference);
  }

  async createCharge(parameters: string, context: SendContext): Promise<SendOutcome> {
    const { api_version: apiVersion, create } = readChargeParameters(parameters);
    const { idempotencyKey } = context;
    return this.#send(
      "create",
      null,
      context,
      this.#stripe.paymentIntents.create(create, { idempotencyKey, apiVersion }),
    );
  }

  async confirmCharge(chargeId: string, parameters: string, context: SendContext): Promise<SendOutcome> {
    const { api_version: apiVersion, confirm } = readChargeParameters(parameters);
    const { idempotencyKey } = context;
    const call = this.#stripe.paymentIntents.confirm(chargeId, confirm, { idempotencyKey, apiVersion });
    return this.#send("confirm", chargeId, context, call);
  }

  async cancelCharge(chargeId: string, context: SendContext): Promise<SendOutcome> {
    const { idempotencyKey } = context;
    return this.#send(
      "fence",
      chargeId,
      context,
      this.#stripe.paymentIntents.cancel(chargeId, {}, { idempotencyKey }),
    );
  }

  async getCharge(chargeId: string): Promise<LookupOutcome> {
    const answer = await readAnswer(this.#stripe.paymentIntents.retrieve(chargeId), this.#log);
    const { evidence, retryAfterMs } = answer;
    const verdict = lookupRow(answer).then;
    if (verdict.type === "missing") return { type: "missing", evidence };
    if (verdict.type === "unanswered") return { ...verdict, retryAfterMs, evidence };
    const charge = toProviderCharge(answer.body);
    if (charge?.id !== chargeId) return { type: "unanswered", reason: "unreadable", retryAfterMs, evidence };
    return { type: "found", charge, evidence };
  }

  async findCharge(reference: FindReference): Promise<LookupOutcome> {
    const endsAt = performance.now() + this.#timeoutMs;
    const listPage = async (parameters: Stripe.PaymentIntentListParams): Promise<WireAnswer> => {
      const timeout = Math.floor(endsAt - performance.now());
      if (timeout < 1) return deadlinePassed();
      return readAnswer(this.#stripe.paymentIntents.list(parameters, { timeout }), this.#log);
    };
    return findCharge(listPage, reference, this.#log);
  }

  account(): Promise<AccountOutcome> {
    this.#account ??= this.#askAccount().then((outcome) => {
      if (outcome.type !== "known") this.#account = null;
      return outcome;
    });
    return this.#account;
  }

  async #askAccount(): Promise<AccountOutcome> {
    const answer = await readAnswer(this.#stripe.accounts.retrieveCurrent(), this.#log);
    const verdict = lookupRow(answer).then;
    if (verdict.type === "answered") {
      const accountId = isFields(answer.body) ? text(answer.body["id"]) : null;
      return accountId === null ? { type: "unanswered", reason: "unreadable" } : { type: "known", accountId };
    }
    // A restricted key may not read its account: the key itself is then the identity.
    if (isLastingRefusal(answer)) return { type: "known", accountId: this.#keyIdentity() };
    return { type: "unanswered", reason: verdict.type === "unanswered" ? verdict.reason : "refused" };
  }

  #keyIdentity(): string {
    return `key_${this.credentialDigest.slice(0, KEY_IDENTITY_LENGTH)}`;
  }

  async #send(
    call: ProviderCall,
    chargeId: string | null,
    context: SendContext,
    request: PaymentIntentAnswer,
  ): Promise<SendOutcome> {
    const answer = await readAnswer(request, this.#log);
    const { evidence, retryAfterMs, replayed } = answer;
    const outcome = classifySend(answer, { call, resend: context.resend });
    if (outcome === "object") {
      const charge = toProviderCharge(answer.body);
      const isAsked = charge !== null && (chargeId === null || charge.id === chargeId);
      if (isAsked) return { type: "object", charge, replayed, evidence };
      return { type: "unknown", reason: "unreadable", keySpent: false, retryAfterMs, evidence };
    }
    if (outcome.type === "unknown" && outcome.reason === "key_mismatch") {
      const about = { call, provider_key: context.idempotencyKey, provider_request_id: evidence.requestId };
      this.#log.error(about, "Stripe knows this key with other parameters: what is sent has drifted");
    }
    return outcome;
  }
}

/** Answered, in Stripe's form, and the same tomorrow: not a wrong key, a busy key or a limit. */
function isLastingRefusal({ fault, status }: WireAnswer): boolean {
  return (
    fault === null &&
    status !== null &&
    status >= 400 &&
    status < 500 &&
    ![401, 409, 424, 429].includes(status)
  );
}

function addressOf(apiBase: string): { host: string; port: string; protocol: "http" | "https" } {
  const url = new URL(apiBase);
  const protocol = url.protocol === "https:" ? "https" : "http";
  const isOrigin = url.origin !== "null" && `${url.origin}/` === url.href;
  if (!isOrigin || !["http:", "https:"].includes(url.protocol)) {
    throw new Error("the base address of Stripe's API must be http:// or https://, a host and a port");
  }
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  return { host, port: url.port === "" ? (protocol === "https" ? "443" : "80") : url.port, protocol };
}
