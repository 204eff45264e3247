import type { PaymentInput } from "../../src/domain/payment.js";
import type {
  LookupOutcome,
  PaymentProvider,
  ProviderCall,
  ProviderCharge,
  SendContext,
  SendOutcome,
} from "../../src/domain/provider.js";

/** What an adapter's test brings along: a provider that talks to a server which can be made to misbehave. */
export interface ProviderHarness {
  readonly provider: PaymentProvider;
  /** Another adapter for the same account and mode, as a second process would have it. */
  readonly sibling: PaymentProvider;
  /** An adapter whose credential the provider refuses. */
  readonly refused: PaymentProvider;
  /** An adapter with nobody at the other end. */
  readonly unreachable: PaymentProvider;
  /** An adapter for another account: its objects are not ours. */
  readonly stranger: PaymentProvider;
  /** Payment method tokens by what becomes of them. */
  readonly tokens: { readonly succeeds: string; readonly declines: string; readonly authenticates: string };
  /** The next such call has its effect, and its answer is lost. */
  loseAnswer(call: ProviderCall): Promise<void>;
  /** The next such call has no effect, and its answer is lost. */
  loseRequest(call: ProviderCall): Promise<void>;
  /** The next such call is refused by a rate limit that asks for a wait of a second. */
  limitRate(call: ProviderCall): Promise<void>;
  /** The next such call fails with a 500 that its key answers from then on. */
  failForEver(call: ProviderCall): Promise<void>;
  /** How often money moved for an attempt, by the server's own books. */
  successfulCharges(attemptId: string): Promise<number>;
  close(): Promise<void>;
}

export const TENANT_ID = "ten_conformance";
const HOUR_MS = 3_600_000;

/** One attempt's calls, with the keys that the core derives for it. */
export class ChargeAttempt {
  readonly attemptId: string;
  readonly #harness: ProviderHarness;

  constructor(harness: ProviderHarness, attemptId: string) {
    this.#harness = harness;
    this.attemptId = attemptId;
  }

  contextOf(call: ProviderCall, resend = false): SendContext {
    return {
      idempotencyKey: `payment-attempt:${this.attemptId}${call === "create" ? "" : `:${call}`}`,
      resend,
    };
  }

  prepare(changes: Partial<PaymentInput> = {}) {
    const input: PaymentInput = {
      amount: 4200,
      currency: "usd",
      payment_method: this.#harness.tokens.succeeds,
      capture_method: "automatic",
      merchant_order_id: null,
      customer: null,
      description: "Conformance",
      statement_descriptor: null,
      return_url: null,
      metadata: {},
      ...changes,
    };
    return this.#harness.provider.prepareCharge(input, { attemptId: this.attemptId, tenantId: TENANT_ID });
  }

  parametersOf(changes: Partial<PaymentInput> = {}): string {
    const prepared = this.prepare(changes);
    if (!prepared.ok) throw new Error(prepared.detail);
    return prepared.parameters;
  }

  create(parameters: string, resend = false): Promise<SendOutcome> {
    return this.#harness.provider.createCharge(parameters, this.contextOf("create", resend));
  }

  /** The id of an object that is made without incident. */
  async created(parameters: string): Promise<string> {
    return chargeOf(await this.create(parameters)).id;
  }

  confirm(id: string, parameters: string, resend = false): Promise<SendOutcome> {
    return this.#harness.provider.confirmCharge(id, parameters, this.contextOf("confirm", resend));
  }

  cancel(id: string): Promise<SendOutcome> {
    return this.#harness.provider.cancelCharge(id, this.contextOf("fence"));
  }

  find(by: PaymentProvider = this.#harness.provider): Promise<LookupOutcome> {
    const createdFrom = new Date(Date.now() - HOUR_MS);
    return by.findCharge({
      attemptId: this.attemptId,
      createdFrom,
      createdTo: new Date(Date.now() + HOUR_MS),
    });
  }

  successfulCharges(): Promise<number> {
    return this.#harness.successfulCharges(this.attemptId);
  }
}

export function chargeOf(outcome: SendOutcome | LookupOutcome): ProviderCharge {
  if (outcome.type === "object" || outcome.type === "found") return outcome.charge;
  throw new Error(`no object: ${JSON.stringify(outcome)}`);
}
