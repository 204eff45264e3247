import type { PaymentInput } from "../../src/domain/payment.js";
import type {
  EffectInput,
  LookupOutcome,
  PaymentProvider,
  ProviderCall,
  ProviderCharge,
  ProviderRefund,
  RefundLookupOutcome,
  RefundSendOutcome,
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
  readonly tokens: {
    readonly succeeds: string;
    readonly declines: string;
    readonly authenticates: string;
    readonly refundsLater: string;
  };
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
  /** How much of a charge object was given back and by how many refunds, by the server's own books. */
  givenBack(chargeId: string): Promise<{ readonly refunds: number; readonly amount: number }>;
  /** The ids of everything that the server shows as a refund of the charge object, releases included. */
  refundIds(chargeId: string): Promise<string[]>;
  /** What happens without a call of ours: by the merchant's people, a bank, or the provider itself. */
  readonly outside: {
    capture(chargeId: string, amount: number): Promise<unknown>;
    cancel(chargeId: string): Promise<unknown>;
    lapse(chargeId: string): Promise<unknown>;
    /** Resolves to the refund's id. */
    refund(chargeId: string, amount: number): Promise<string>;
    settleRefund(refundId: string, outcome: "succeed" | "fail"): Promise<unknown>;
    failRefund(refundId: string): Promise<unknown>;
    /** Resolves to the dispute's id; its funds are withdrawn at once. */
    dispute(chargeId: string): Promise<string>;
    closeDispute(disputeId: string, outcome: "won" | "lost"): Promise<unknown>;
    /** Pays out all that the account has. Resolves to the payout's id. */
    payOut(): Promise<string>;
  };
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

/** One effect after a charge, with the key that the core derives for its attempt. */
export class EffectAttempt {
  readonly attemptId: string;
  readonly #harness: ProviderHarness;

  constructor(harness: ProviderHarness, attemptId: string) {
    this.#harness = harness;
    this.attemptId = attemptId;
  }

  contextOf(resend = false): SendContext {
    return { idempotencyKey: `payment-attempt:${this.attemptId}`, resend };
  }

  prepare(input: EffectInput): string {
    const reference = { attemptId: this.attemptId, tenantId: TENANT_ID };
    const prepared = this.#harness.provider.prepareEffect(input, reference);
    if (!prepared.ok) throw new Error(prepared.detail);
    return prepared.parameters;
  }

  capture(chargeId: string, amount: number, resend = false): Promise<SendOutcome> {
    const parameters = this.prepare({ call: "capture", amount, currency: "usd" });
    return this.#harness.provider.captureCharge(chargeId, parameters, this.contextOf(resend));
  }

  cancel(chargeId: string, resend = false): Promise<SendOutcome> {
    const parameters = this.prepare({ call: "cancel", reason: "requested_by_customer" });
    return this.#harness.provider.voidCharge(chargeId, parameters, this.contextOf(resend));
  }

  refund(
    chargeId: string,
    amount: number,
    { resend = false, by = this.#harness.provider } = {},
  ): Promise<RefundSendOutcome> {
    const parameters = this.prepare({ call: "refund", chargeId, amount, currency: "usd", reason: null });
    return by.createRefund(parameters, this.contextOf(resend));
  }

  find(chargeId: string, by: PaymentProvider = this.#harness.provider): Promise<RefundLookupOutcome> {
    return by.findRefund({ attemptId: this.attemptId, chargeId });
  }
}

export function refundOf(outcome: RefundSendOutcome | RefundLookupOutcome): ProviderRefund {
  if (outcome.type === "refund" || outcome.type === "found") return outcome.refund;
  throw new Error(`no refund: ${JSON.stringify(outcome)}`);
}

export function chargeOf(outcome: SendOutcome | LookupOutcome): ProviderCharge {
  if (outcome.type === "object" || outcome.type === "found") return outcome.charge;
  throw new Error(`no object: ${JSON.stringify(outcome)}`);
}
