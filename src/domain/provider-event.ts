import type { AttemptKind } from "./attempt.js";
import type { Payment } from "./payment.js";
import type { NoticeSubject, ProviderNotice, ProviderRefund } from "./provider.js";

/** `outside_tolerance`: a genuine signature, too old or from the future. `malformed`: signed, and no event of the provider's. */
export type NoticeRefusal =
  | "secret_missing"
  | "header_missing"
  | "header_malformed"
  | "signature_mismatch"
  | "outside_tolerance"
  | "malformed";

/** What became of a notice's signature and text. Of `reason` the sender is told no more than whether it is `malformed`. */
export type NoticeReading =
  | { readonly ok: true; readonly notice: ProviderNotice }
  | { readonly ok: false; readonly reason: NoticeRefusal };

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

/** Its marks name another attempt or tenant than the one whose object it is. */
export function namesAnother(
  marker: { readonly attemptId: string | null; readonly tenantId: string | null },
  owner: AttemptReference,
): boolean {
  return (
    (marker.attemptId !== null && marker.attemptId !== owner.id) ||
    (marker.tenantId !== null && marker.tenantId !== owner.tenantId)
  );
}
