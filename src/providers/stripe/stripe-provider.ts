import { createHash } from "node:crypto";
import Stripe from "stripe";
import type { PaymentInput } from "../../domain/payment.js";
import type {
  AccountOutcome,
  DisputeLookupOutcome,
  EffectInput,
  LookupOutcome,
  PageRequest,
  PaymentProvider,
  PayoutLookupOutcome,
  PreparedCharge,
  ProviderCall,
  RefundLookupOutcome,
  RefundSendOutcome,
  SendContext,
  SendOutcome,
} from "../../domain/provider.js";
import type { Logger } from "../../lib/log.js";
import { prepareChargeParameters, readChargeParameters } from "./charge-parameters.js";
import { classifySend, lookupRow } from "./classify-error.js";
import { toProviderDispute } from "./dispute-outcome.js";
import { prepareEffectParameters, readEffectParameters } from "./effect-parameters.js";
import { createdWindow, type FindReference, findCharge } from "./find-charge.js";
import { findRefund } from "./find-refund.js";
import { DeadlineHttpClient } from "./http-client.js";
import { StripeLists } from "./list-objects.js";
import {
  type ListPage,
  PAGE_SIZE,
  type PageParameters,
  refusalOf,
  startingAfter,
  unanswered,
} from "./list-pages.js";
import { isFields, toProviderCharge } from "./outcome.js";
import { readPayout, SOURCE_EXPANSIONS } from "./payout-movements.js";
import { toProviderRefund } from "./refund-outcome.js";
import { CHARGE_EXPANSIONS, type Reference } from "./stored-parameters.js";
import { deadlinePassed, readAnswer, type SdkAnswer, text, type WireAnswer } from "./wire-answer.js";

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

class StripeAdapter implements StripeProvider {
  readonly name = "stripe";
  readonly livemode: boolean;
  readonly credentialDigest: string;
  readonly #stripe: Stripe;
  readonly #http = new DeadlineHttpClient();
  readonly #timeoutMs: number;
  readonly #log: Logger;
  readonly #lists: StripeLists;
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
    this.#lists = new StripeLists(this.#stripe, (request) => this.#ask(request));
  }

  close(): void {
    this.#http.close();
  }

  prepareCharge(input: PaymentInput, reference: Reference): PreparedCharge {
    return prepareChargeParameters(input, reference);
  }

  prepareEffect(input: EffectInput, reference: Reference): PreparedCharge {
    return prepareEffectParameters(input, reference);
  }

  async createCharge(parameters: string, context: SendContext): Promise<SendOutcome> {
    const { api_version: apiVersion, create } = readChargeParameters(parameters);
    const { idempotencyKey } = context;
    const request = this.#stripe.paymentIntents.create(create, { idempotencyKey, apiVersion });
    return this.#sendCharge("create", null, context, request);
  }

  async confirmCharge(chargeId: string, parameters: string, context: SendContext): Promise<SendOutcome> {
    const { api_version: apiVersion, confirm } = readChargeParameters(parameters);
    const { idempotencyKey } = context;
    const request = this.#stripe.paymentIntents.confirm(chargeId, confirm, { idempotencyKey, apiVersion });
    return this.#sendCharge("confirm", chargeId, context, request);
  }

  async cancelCharge(chargeId: string, context: SendContext): Promise<SendOutcome> {
    const { idempotencyKey } = context;
    const request = this.#stripe.paymentIntents.cancel(chargeId, {}, { idempotencyKey });
    return this.#sendCharge("fence", chargeId, context, request);
  }

  async captureCharge(chargeId: string, stored: string, context: SendContext): Promise<SendOutcome> {
    const { apiVersion, parameters } = readEffectParameters(stored, "capture");
    const { idempotencyKey } = context;
    const request = this.#stripe.paymentIntents.capture(chargeId, parameters, { idempotencyKey, apiVersion });
    return this.#sendCharge("capture", chargeId, context, request);
  }

  async voidCharge(chargeId: string, stored: string, context: SendContext): Promise<SendOutcome> {
    const { apiVersion, parameters } = readEffectParameters(stored, "cancel");
    const { idempotencyKey } = context;
    const request = this.#stripe.paymentIntents.cancel(chargeId, parameters, { idempotencyKey, apiVersion });
    return this.#sendCharge("cancel", chargeId, context, request);
  }

  async createRefund(stored: string, context: SendContext): Promise<RefundSendOutcome> {
    const { apiVersion, parameters } = readEffectParameters(stored, "refund");
    const { idempotencyKey } = context;
    const request = this.#stripe.refunds.create(parameters, { idempotencyKey, apiVersion });
    const { answer, outcome } = await this.#send("refund", context, request);
    if (outcome !== "object") return outcome;
    const refund = toProviderRefund(answer.body);
    const isOfThis = (refund?.chargeId ?? parameters.payment_intent) === parameters.payment_intent;
    if (refund === null || !isOfThis) return unreadable(answer);
    return { type: "refund", refund, replayed: answer.replayed, evidence: answer.evidence };
  }

  async getCharge(chargeId: string): Promise<LookupOutcome> {
    const answer = await this.#ask(
      this.#stripe.paymentIntents.retrieve(chargeId, { expand: CHARGE_EXPANSIONS }),
    );
    const charge = toProviderCharge(answer.body);
    const { evidence } = answer;
    return (
      refusalOf(answer) ?? (isOf(charge, chargeId) ? { type: "found", charge, evidence } : garbled(answer))
    );
  }

  async getRefund(refundId: string): Promise<RefundLookupOutcome> {
    const answer = await this.#ask(this.#stripe.refunds.retrieve(refundId));
    const refund = toProviderRefund(answer.body);
    const { evidence } = answer;
    return (
      refusalOf(answer) ?? (isOf(refund, refundId) ? { type: "found", refund, evidence } : garbled(answer))
    );
  }

  async getDispute(disputeId: string): Promise<DisputeLookupOutcome> {
    const answer = await this.#ask(this.#stripe.disputes.retrieve(disputeId));
    const dispute = toProviderDispute(answer.body);
    const { evidence } = answer;
    return (
      refusalOf(answer) ?? (isOf(dispute, disputeId) ? { type: "found", dispute, evidence } : garbled(answer))
    );
  }

  async findCharge(reference: FindReference): Promise<LookupOutcome> {
    const created = createdWindow(reference);
    const listPage = this.#paged((page, options) =>
      this.#stripe.paymentIntents.list({ created, ...page }, options),
    );
    return findCharge(listPage, reference, this.#log);
  }

  async findRefund(reference: { attemptId: string; chargeId: string }): Promise<RefundLookupOutcome> {
    const filter = { payment_intent: reference.chargeId };
    const listPage = this.#paged((page, options) =>
      this.#stripe.refunds.list({ ...filter, ...page }, options),
    );
    return findRefund(listPage, reference, this.#log);
  }

  async getPayout(payoutId: string, after: string | null): Promise<PayoutLookupOutcome> {
    const filter = { payout: payoutId, expand: SOURCE_EXPANSIONS, limit: PAGE_SIZE };
    const answer = await this.#ask(
      this.#stripe.balanceTransactions.list({ ...filter, ...startingAfter(after) }),
    );
    return readPayout(answer, payoutId, after);
  }

  listCharges(page: PageRequest) {
    return this.#lists.listCharges(page);
  }

  listRefunds(page: PageRequest) {
    return this.#lists.listRefunds(page);
  }

  listDisputes(page: PageRequest) {
    return this.#lists.listDisputes(page);
  }

  listTransactions(page: PageRequest) {
    return this.#lists.listTransactions(page);
  }

  listUndeliveredEvents(page: PageRequest) {
    return this.#lists.listUndeliveredEvents(page);
  }

  listPayoutEvents(page: PageRequest) {
    return this.#lists.listPayoutEvents(page);
  }

  account(): Promise<AccountOutcome> {
    this.#account ??= this.#askAccount().then((outcome) => {
      if (outcome.type !== "known") this.#account = null;
      return outcome;
    });
    return this.#account;
  }

  async #askAccount(): Promise<AccountOutcome> {
    const answer = await this.#ask(this.#stripe.accounts.retrieveCurrent());
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

  #ask(request: SdkAnswer): Promise<WireAnswer> {
    return readAnswer(request, this.#log);
  }

  /** All pages share one deadline, which begins now. */
  #paged(list: (page: PageParameters, options: Stripe.RequestOptions) => SdkAnswer): ListPage {
    const endsAt = performance.now() + this.#timeoutMs;
    return async (page) => {
      const timeout = Math.floor(endsAt - performance.now());
      return timeout < 1 ? deadlinePassed() : this.#ask(list(page, { timeout }));
    };
  }

  async #sendCharge(
    call: ProviderCall,
    chargeId: string | null,
    context: SendContext,
    request: SdkAnswer,
  ): Promise<SendOutcome> {
    const { answer, outcome } = await this.#send(call, context, request);
    if (outcome !== "object") return outcome;
    const charge = toProviderCharge(answer.body);
    if (charge === null || (chargeId !== null && charge.id !== chargeId)) return unreadable(answer);
    return { type: "object", charge, replayed: answer.replayed, evidence: answer.evidence };
  }

  async #send(call: ProviderCall, context: SendContext, request: SdkAnswer) {
    const answer = await this.#ask(request);
    const outcome = classifySend(answer, { call, resend: context.resend });
    if (outcome !== "object" && outcome.type === "unknown" && outcome.reason === "key_mismatch") {
      const { requestId } = answer.evidence;
      const about = { call, provider_key: context.idempotencyKey, provider_request_id: requestId };
      this.#log.error(about, "Stripe knows this key with other parameters: what is sent has drifted");
    }
    return { answer, outcome };
  }
}

function unreadable({ retryAfterMs, evidence }: WireAnswer): SendOutcome & { type: "unknown" } {
  return { type: "unknown", reason: "unreadable", keySpent: false, retryAfterMs, evidence };
}

function garbled(answer: WireAnswer) {
  return unanswered(answer, "unreadable");
}

function isOf<T extends { readonly id: string }>(object: T | null, id: string): object is T {
  return object?.id === id;
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
