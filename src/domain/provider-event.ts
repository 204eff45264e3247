import type { AttemptKind } from "./attempt.js";
import type { Payment } from "./payment.js";
import type { NoticeSubject, ProviderNotice, ProviderRefund } from "./provider.js";

/** What became of a notice's signature and text. `reason` is for our log, never for the sender. */
export type NoticeReading =
  | { readonly ok: true; readonly notice: ProviderNotice }
  | { readonly ok: false; readonly reason: string };

/** An attempt as far as a notice needs to know it. */
export interface AttemptReference {
  readonly tenantId: string;
  readonly id: string;
  readonly paymentId: string;
  readonly kind: AttemptKind;
  readonly livemode: boolean;
  /** The charge object that the attempt acts on; null while it is not known. */
  readonly objectId: string | null;
}

/** What a charge object, or a refund, that a notice names is to us. */
export type ChargeVerdict =
  /** News of this attempt: it is made due, and asks the provider itself. */
  | { readonly type: "nudge"; readonly attempt: AttemptReference }
  /** The object is this attempt's, and carries another one's marker: a person must look. */
  | { readonly type: "foreign"; readonly attempt: AttemptReference }
  /** The object carries this attempt's marker, and the attempt has another object. */
  | { readonly type: "stray"; readonly attempt: AttemptReference }
  /** Our marker, of an attempt that is not known here (yet): asked again later. */
  | { readonly type: "unknown" }
  | { readonly type: "other_mode" }
  | { readonly type: "not_ours" };

/** `outside`: made by somebody else, on a charge of ours. */
export type RefundVerdict = ChargeVerdict | { readonly type: "outside"; readonly charge: AttemptReference };

/** `owner`: whose charge object it is; `marked`: the charge attempt that its marker names. Null: there is none. */
export function judgeCharge(
  subject: Extract<NoticeSubject, { type: "charge" }>,
  livemode: boolean,
  owner: AttemptReference | null,
  marked: AttemptReference | null,
): ChargeVerdict {
  if (owner !== null) {
    if (owner.livemode !== livemode) return { type: "other_mode" };
    return namesAnother(subject, owner)
      ? { type: "foreign", attempt: owner }
      : { type: "nudge", attempt: owner };
  }
  if (subject.attemptId === null || subject.tenantId === null) return { type: "not_ours" };
  if (marked === null || marked.kind !== "charge") return { type: "unknown" };
  if (marked.livemode !== livemode) return { type: "other_mode" };
  const isItsObject = marked.objectId === null || marked.objectId === subject.objectId;
  return isItsObject ? { type: "nudge", attempt: marked } : { type: "stray", attempt: marked };
}

/** `owner`: whose charge object was refunded; `marked`: the attempt that the refund's marker names. */
export function judgeRefund(
  refund: Pick<ProviderRefund, "attemptId" | "tenantId">,
  livemode: boolean,
  owner: AttemptReference | null,
  marked: AttemptReference | null,
): RefundVerdict {
  if (owner === null) return { type: "not_ours" };
  if (owner.livemode !== livemode) return { type: "other_mode" };
  if (refund.attemptId === null) return { type: "outside", charge: owner };
  if (refund.tenantId !== owner.tenantId) return { type: "foreign", attempt: owner };
  if (marked === null) return { type: "unknown" };
  const isItsRefund = marked.kind === "refund" && marked.paymentId === owner.paymentId;
  return isItsRefund ? { type: "nudge", attempt: marked } : { type: "foreign", attempt: owner };
}

/**
 * What a refund without our marker is to its payment. `release`: the rest of an authorisation, which providers show as
 * a refund and which gives nothing back. `early`: of money whose capture is not known here yet.
 */
export function judgeOutsideRefund(
  payment: Pick<Payment, "amount" | "amountCaptured">,
  refund: Pick<ProviderRefund, "amount" | "releasesHold">,
): "refund" | "release" | "early" {
  const uncaptured = payment.amount - payment.amountCaptured;
  const isRest = payment.amountCaptured === 0 || refund.amount === uncaptured;
  if (refund.releasesHold === true && isRest) return "release";
  return payment.amountCaptured === 0 ? "early" : "refund";
}

function namesAnother(
  marker: { readonly attemptId: string | null; readonly tenantId: string | null },
  owner: AttemptReference,
): boolean {
  return (
    (marker.attemptId !== null && marker.attemptId !== owner.id) ||
    (marker.tenantId !== null && marker.tenantId !== owner.tenantId)
  );
}

/** Far beyond any setting of tries; keeps the power from overflowing. */
const MOST_DOUBLINGS = 30;

/** The wait after the `tries`-th failed try, from 1: the upper half of first · 2^(tries-1), at most `mostMs`. */
export function retryWaitMs(
  range: { readonly firstMs: number; readonly mostMs: number },
  tries: number,
  random: () => number,
): number {
  const whole = Math.min(range.firstMs * 2 ** Math.min(tries - 1, MOST_DOUBLINGS), range.mostMs);
  return Math.max(1, Math.round((whole * (1 + random())) / 2));
}

/** The wait where a try does not count: the upper half of half the event's age, so it grows without being counted. */
export function ageWaitMs(
  range: { readonly firstMs: number; readonly mostMs: number },
  ageMs: number,
  random: () => number,
): number {
  const whole = Math.min(Math.max(range.firstMs, ageMs / 2), range.mostMs);
  return Math.max(1, Math.round((whole * (1 + random())) / 2));
}
