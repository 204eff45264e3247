import type { CaptureMethod, Failure, NextAction, PaymentInput } from "./payment.js";

/** The calls of a charge that change something at the provider, in the order they are made. */
export const CHARGE_CALLS = ["create", "confirm", "fence"] as const;
export type ChargeCall = (typeof CHARGE_CALLS)[number];
/** The effects after a charge: one call each. */
export const EFFECT_CALLS = ["capture", "cancel", "refund"] as const;
export type EffectCall = (typeof EFFECT_CALLS)[number];
export type ProviderCall = ChargeCall | EffectCall;

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
  /** Until when an authorisation can be captured, where the provider says so. */
  readonly authorizedUntil: Date | null;
  /** With status `canceled`: whether the provider ended it because the authorisation lapsed. */
  readonly lapsed: boolean;
  /** What the provider kept for itself, where it says so already. */
  readonly fee: ProviderFee | null;
}

/** A fee as one balance transaction shows it. Integer, ISO 4217 minor unit of its own currency. */
export interface ProviderFee {
  readonly transactionId: string;
  readonly amount: number;
  readonly currency: string;
}

/** `pending`: made and on its way, or waiting for the customer. `unrecognized`: a status this adapter does not know. */
export type ProviderRefundStatus = "pending" | "succeeded" | "failed" | "unrecognized";

/** The provider's refund object, in our units. */
export interface ProviderRefund {
  readonly id: string;
  /** The charge object that it refunds; null where the provider names none. */
  readonly chargeId: string | null;
  readonly status: ProviderRefundStatus;
  /** Null where the provider's amount is no whole number of our minor unit. */
  readonly amount: number | null;
  readonly currency: string;
  /** From the object's metadata; null for a refund that was made outside. */
  readonly attemptId: string | null;
  readonly tenantId: string | null;
  /** Set with status `failed`. */
  readonly failure: Failure | null;
  /** What of an authorisation was not captured, which the provider shows as a refund too: nothing was given back. */
  readonly releasesHold?: true;
}

/** Where a dispute stands: `open` (an answer is due), `under_review`, and its ends. `warning`: an inquiry, no money yet. */
export const DISPUTE_STATUSES = ["warning", "open", "under_review", "won", "lost", "closed"] as const;
export type DisputeStatus = (typeof DISPUTE_STATUSES)[number];

/** The provider's dispute object, in our units. */
export interface ProviderDispute {
  readonly id: string;
  readonly chargeId: string | null;
  readonly status: DisputeStatus | "unrecognized";
  readonly amount: number | null;
  readonly currency: string;
  readonly reason: string | null;
  readonly livemode: boolean;
  /** Each movement of funds so far, in order: negative amounts were withdrawn from us, positive ones given back. */
  readonly movements: readonly DisputeMovement[];
}

export interface DisputeMovement {
  readonly transactionId: string;
  readonly amount: number;
  readonly currency: string;
  /** What the provider took for the movement, or gave back: then negative. */
  readonly fee: number;
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
      /** `recovering`: kept back here, since the database was restored and nothing is sent until all has been asked about. */
      readonly reason: NotPerformedReason | "recovering";
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

/** What one send of a refund came to. */
export type RefundSendOutcome =
  | {
      readonly type: "refund";
      readonly refund: ProviderRefund;
      readonly replayed: boolean;
      readonly evidence: Evidence;
    }
  | Exclude<SendOutcome, { type: "object" }>;

/** What one question about a refund came to. */
export type RefundLookupOutcome =
  | { readonly type: "found"; readonly refund: ProviderRefund; readonly evidence: Evidence }
  | Exclude<LookupOutcome, { type: "found" }>;

export type DisputeLookupOutcome =
  | { readonly type: "found"; readonly dispute: ProviderDispute; readonly evidence: Evidence }
  | Exclude<LookupOutcome, { type: "found" }>;

/** What was settled to the bank with one payout: a movement a source object. Amounts are net of fees, and may be negative. */
export interface PayoutMovement {
  readonly transactionId: string;
  /** The charge object whose money it is. */
  readonly chargeId: string | null;
  readonly amount: number;
  readonly currency: string;
}

export type PayoutLookupOutcome =
  /** One page of it; `next`: the cursor of the page behind it, left out where this was the last. */
  | {
      readonly type: "found";
      readonly movements: readonly PayoutMovement[];
      readonly next?: string;
      readonly evidence: Evidence;
    }
  | Exclude<LookupOutcome, { type: "found" | "absent" }>;

export interface SendContext {
  /** Derived from the attempt id: the same for every send of this call. */
  readonly idempotencyKey: string;
  /** An earlier send of this call is unresolved, so a refusal of this one says nothing of that one. */
  readonly resend: boolean;
}

/** What an effect is to do. Amounts are integers in the payment's minor unit; a refund's is always explicit. */
export type EffectInput =
  | { readonly call: "capture"; readonly amount: number; readonly currency: string }
  | { readonly call: "cancel"; readonly reason: string | null }
  | {
      readonly call: "refund";
      readonly chargeId: string;
      readonly amount: number;
      readonly currency: string;
      readonly reason: string | null;
    };

/** Parameters of a charge's calls or of an effect's, as text, stored at the accept and sent verbatim. */
export type PreparedCharge =
  | { readonly ok: true; readonly parameters: string }
  | { readonly ok: false; readonly pointer: string; readonly detail: string };

/** What a signed notice of the provider's says. A hint: the object is fetched before anything is believed. */
export interface ProviderNotice {
  readonly eventId: string;
  readonly type: string;
  readonly livemode: boolean;
  readonly subject: NoticeSubject;
}

/** Which object a notice is about; `other`: nothing that Pawl follows. */
export type NoticeSubject =
  | {
      readonly type: "charge";
      readonly objectId: string;
      readonly attemptId: string | null;
      readonly tenantId: string | null;
    }
  /** `chargeId`: the charge object, where the notice names one; null tells nothing. */
  | { readonly type: "refund"; readonly objectId: string; readonly chargeId: string | null }
  | { readonly type: "dispute"; readonly objectId: string; readonly chargeId: string | null }
  | { readonly type: "payout"; readonly objectId: string }
  | { readonly type: "other"; readonly objectId: string };

/** Which page of a list is wanted: what the provider made between the two times, by its own clock, newest first. */
export interface PageRequest {
  readonly createdFrom: Date;
  readonly createdTo: Date;
  /** From the page before this one; null: the first. */
  readonly cursor: string | null;
}

export type PageOutcome<Item> =
  | {
      readonly type: "page";
      readonly items: readonly Item[];
      /** Ids of what is there and cannot be read. */
      readonly unreadable: readonly string[];
      /** When the last of this page was made, read or not; null: the page is empty. */
      readonly oldest: Date | null;
      /** Null: this was the last page. */
      readonly next: string | null;
      readonly evidence: Evidence;
    }
  | Extract<LookupOutcome, { type: "unanswered" }>;

/** A charge object as a list shows it, with what a payment could be rebuilt from. Its fee is not told. */
export interface ListedCharge extends ProviderCharge {
  readonly createdAt: Date;
  readonly captureMethod: CaptureMethod;
  readonly paymentMethod: string | null;
  readonly customer: string | null;
  readonly description: string | null;
}

/** A movement of the provider's balance. Integers in the minor unit of its own currency; negative: it left the balance. */
export interface ListedTransaction {
  readonly id: string;
  readonly amount: number;
  readonly fee: number;
  readonly currency: string;
  readonly of: TransactionSubject;
}

/** Whose movement it is; `chargeId`: the charge object, where the provider names one. `other`: nothing that Pawl follows. */
export type TransactionSubject =
  | { readonly type: "charge"; readonly chargeId: string | null }
  /** `isReversal`: the money of a refund that failed came back. */
  | {
      readonly type: "refund";
      readonly refundId: string;
      readonly chargeId: string | null;
      readonly isReversal: boolean;
    }
  | { readonly type: "dispute"; readonly disputeId: string; readonly chargeId: string | null }
  | { readonly type: "other" };

/** An event of the provider's, and its text as a delivery would have brought it. */
export interface ListedEvent {
  readonly notice: ProviderNotice;
  readonly payload: string;
}

/** What the provider has, in lists: for comparing with what we have. One page a call. */
export interface ProviderLists {
  listCharges(page: PageRequest): Promise<PageOutcome<ListedCharge>>;
  listRefunds(page: PageRequest): Promise<PageOutcome<ProviderRefund>>;
  listDisputes(page: PageRequest): Promise<PageOutcome<ProviderDispute>>;
  listTransactions(page: PageRequest): Promise<PageOutcome<ListedTransaction>>;
  listUndeliveredEvents(page: PageRequest): Promise<PageOutcome<ListedEvent>>;
  /** That a payout was made, delivered or not. */
  listPayoutEvents(page: PageRequest): Promise<PageOutcome<ListedEvent>>;
}

export type AccountOutcome =
  | { readonly type: "known"; readonly accountId: string }
  | { readonly type: "unanswered"; readonly reason: string };

/** Each has an adapter in src/providers. */
export const PROVIDER_NAMES = ["stripe"] as const;
export type ProviderName = (typeof PROVIDER_NAMES)[number];

/**
 * The port. Capabilities are kept apart because providers have different ones: looking up by id, looking up by
 * our own reference, replaying a key (a `resend` under the same key while `keyLifetimeMs` lasts), fencing.
 * No method throws for what a provider answers or fails to answer; each ends within the provider timeout.
 */
export interface PaymentProvider extends ProviderLists {
  readonly name: ProviderName;
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
  /** Pure. The text to store for an effect, or why the provider cannot carry the amount exactly. */
  prepareEffect(input: EffectInput, reference: { attemptId: string; tenantId: string }): PreparedCharge;
  /** Takes all or part of an authorisation, once; the rest is released. */
  captureCharge(chargeId: string, parameters: string, context: SendContext): Promise<SendOutcome>;
  /** Releases an authorisation, or ends an object that waits for the customer. */
  voidCharge(chargeId: string, parameters: string, context: SendContext): Promise<SendOutcome>;
  createRefund(parameters: string, context: SendContext): Promise<RefundSendOutcome>;
  getRefund(refundId: string): Promise<RefundLookupOutcome>;
  /** Pages through all refunds of the charge object; `absent` only after the last page. */
  findRefund(reference: { attemptId: string; chargeId: string }): Promise<RefundLookupOutcome>;
  getDispute(disputeId: string): Promise<DisputeLookupOutcome>;
  /** `after`: a cursor from the page before; null: the first page. A payout may have thousands of movements. */
  getPayout(payoutId: string, after: string | null): Promise<PayoutLookupOutcome>;
  getCharge(chargeId: string): Promise<LookupOutcome>;
  /** Pages through everything made in the window; `absent` only after the last page. Times are the provider's `created`. */
  findCharge(reference: { attemptId: string; createdFrom: Date; createdTo: Date }): Promise<LookupOutcome>;
}
