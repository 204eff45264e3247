import type { Failure, NextAction, PaymentInput } from "./payment.js";

/** The calls of a charge that change something at the provider, in the order they are made. */
export const PROVIDER_CALLS = ["create", "confirm", "fence"] as const;
export type ProviderCall = (typeof PROVIDER_CALLS)[number];

/** What the provider's object is now. `unrecognized`: a status this adapter does not know. */
export type ChargeStatus =
  | "created"
  | "pending"
  | "requires_action"
  | "authorized"
  | "succeeded"
  | "declined"
  | "canceled"
  | "unrecognized";

/** The provider's charge object, in our units. */
export interface ProviderCharge {
  readonly id: string;
  readonly status: ChargeStatus;
  /** Integer, ISO 4217 minor unit; null where the provider's amount is no whole number of them. */
  readonly amount: number | null;
  readonly currency: string;
  readonly amountCapturable: number;
  readonly amountCaptured: number;
  readonly livemode: boolean;
  /** From the object's metadata: which attempt and tenant it was made for. */
  readonly attemptId: string | null;
  readonly tenantId: string | null;
  readonly nextAction: NextAction | null;
  /** Set with status `declined`. */
  readonly failure: Failure | null;
}

/** What was on the wire, for the timeline. Never a body. */
export interface Evidence {
  /** HTTP status; null where no answer came. */
  readonly httpStatus: number | null;
  readonly code: string | null;
  readonly requestId: string | null;
}

/** Refused before execution: this send had no effect and never will. */
export type NotPerformedReason = "unreachable" | "rate_limited" | "unauthorized" | "forbidden";

/** The outcome of this send cannot be told from the answer. */
export type UnknownReason =
  | "timeout"
  | "connection_lost"
  | "server_error"
  | "unreadable"
  | "key_in_use"
  | "object_locked"
  | "external_dependency"
  | "state_conflict"
  | "resend_refused"
  | "key_mismatch"
  | "stored_error"
  | "object_missing";

/** What one send came to. A provider's answers are values, never thrown. */
export type SendOutcome =
  /** 2xx. `replayed`: it describes the past, so the object is fetched before it is believed. */
  | {
      readonly type: "object";
      readonly charge: ProviderCharge;
      readonly replayed: boolean;
      readonly evidence: Evidence;
    }
  /** 402: the card was declined. */
  | {
      readonly type: "declined";
      readonly failure: Failure;
      readonly replayed: boolean;
      readonly evidence: Evidence;
    }
  /** The provider found the request itself wrong; nothing was executed. First sends only. */
  | { readonly type: "rejected"; readonly failure: Failure; readonly evidence: Evidence }
  | {
      readonly type: "not_performed";
      readonly reason: NotPerformedReason;
      readonly retryAfterMs: number | null;
      readonly evidence: Evidence;
    }
  | {
      readonly type: "unknown";
      readonly reason: UnknownReason;
      /** The key can never perform this call any more (a stored 500, drifted parameters): sending it again is of no use. */
      readonly keySpent: boolean;
      readonly retryAfterMs: number | null;
      readonly evidence: Evidence;
    };

/** What one question came to. */
export type LookupOutcome =
  | { readonly type: "found"; readonly charge: ProviderCharge; readonly evidence: Evidence }
  /** A complete, immediately consistent list without it. Only for look-ups by our own reference. */
  | { readonly type: "absent"; readonly evidence: Evidence }
  /** 404 for an id. Never absence for an id that we committed. */
  | { readonly type: "missing"; readonly evidence: Evidence }
  | {
      readonly type: "unanswered";
      readonly reason:
        | NotPerformedReason
        | "timeout"
        | "connection_lost"
        | "server_error"
        | "unreadable"
        | "refused";
      readonly retryAfterMs: number | null;
      readonly evidence: Evidence;
    };

export interface SendContext {
  /** Derived from the attempt id: the same for every send of this call. */
  readonly idempotencyKey: string;
  /** An earlier send of this call is unresolved, so a refusal of this one says nothing of that one. */
  readonly resend: boolean;
}

/** Parameters of both calls, as text, stored at the accept and sent verbatim. */
export type PreparedCharge =
  | { readonly ok: true; readonly parameters: string }
  | { readonly ok: false; readonly pointer: string; readonly detail: string };

export type AccountOutcome =
  | { readonly type: "known"; readonly accountId: string }
  | { readonly type: "unanswered"; readonly reason: string };

/**
 * The port. Capabilities are kept apart because providers have different ones: looking up by id, looking up by
 * our own reference, replaying a key (a `resend` under the same key while `keyLifetimeMs` lasts), fencing.
 * No method throws for what a provider answers or fails to answer; each ends within the provider timeout.
 */
export interface PaymentProvider {
  readonly name: string;
  readonly livemode: boolean;
  /** A stable digest of the credential, for remembering which account it belongs to. Not the credential. */
  readonly credentialDigest: string;
  /** The account that the configured credential belongs to; `key_…` where the credential may not read its account. */
  account(): Promise<AccountOutcome>;
  /** Pure. The parameters to store, or why the provider cannot carry this payment exactly. */
  prepareCharge(input: PaymentInput, reference: { attemptId: string; tenantId: string }): PreparedCharge;
  /** Makes the object, moves no money. */
  createCharge(parameters: string, context: SendContext): Promise<SendOutcome>;
  /** The call that moves money. */
  confirmCharge(chargeId: string, parameters: string, context: SendContext): Promise<SendOutcome>;
  /** Cancels an object that is not paid, so that no earlier call of ours can charge it any more. */
  cancelCharge(chargeId: string, context: SendContext): Promise<SendOutcome>;
  getCharge(chargeId: string): Promise<LookupOutcome>;
  /** Pages through everything made in the window; `absent` only after the last page. Times are the provider's `created`. */
  findCharge(reference: { attemptId: string; createdFrom: Date; createdTo: Date }): Promise<LookupOutcome>;
}
