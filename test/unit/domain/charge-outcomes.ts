import type {
  ChargeStatus,
  LookupOutcome,
  NotPerformedReason,
  ProviderRefundStatus,
  RefundLookupOutcome,
  RefundSendOutcome,
  SendOutcome,
  UnknownReason,
} from "../../../src/domain/provider.js";
import {
  ABSENT,
  decline,
  found,
  MISSING,
  type NoObject,
  notPerformed,
  object,
  type Refusal,
  rejection,
  replayedObject,
  unanswered,
  unknown,
} from "./charge-fixtures.js";
import { EFFECT_AMOUNT, refundFound, refundMade } from "./effect-fixtures.js";

// Each name is listed once, so a reason that is added to a type does not compile until it is here.
const namesOf = <Name extends string>(names: Record<Name, true>) => Object.keys(names) as Name[];

const CHARGE_STATUSES = namesOf<ChargeStatus>({
  created: true,
  pending: true,
  requires_action: true,
  authorized: true,
  succeeded: true,
  declined: true,
  canceled: true,
  unrecognized: true,
});
const REFUND_STATUSES = namesOf<ProviderRefundStatus>({
  pending: true,
  succeeded: true,
  failed: true,
  unrecognized: true,
});
const NOT_PERFORMED = namesOf<NotPerformedReason>({
  unreachable: true,
  rate_limited: true,
  unauthorized: true,
  forbidden: true,
});
const UNKNOWN = namesOf<UnknownReason>({
  timeout: true,
  connection_lost: true,
  server_error: true,
  unreadable: true,
  key_in_use: true,
  object_locked: true,
  external_dependency: true,
  state_conflict: true,
  resend_refused: true,
  key_mismatch: true,
  stored_error: true,
  object_missing: true,
});
const UNANSWERED = namesOf<(LookupOutcome & { type: "unanswered" })["reason"]>({
  unreachable: true,
  rate_limited: true,
  unauthorized: true,
  forbidden: true,
  timeout: true,
  connection_lost: true,
  server_error: true,
  unreadable: true,
  refused: true,
});

/** Every kind of answer to a send that is about no object, with every reason that it can give. */
const REFUSALS: readonly Refusal[] = [
  decline(),
  decline(true),
  rejection(),
  ...NOT_PERFORMED.flatMap((reason) => [notPerformed(reason), notPerformed(reason, 3_600_000)]),
  ...UNKNOWN.flatMap((reason) => [unknown(reason), unknown(reason, true), unknown(reason, false, 30_000)]),
];
/** Every kind of answer to a send of a charge's. */
export const SEND_OUTCOMES: readonly SendOutcome[] = [
  ...CHARGE_STATUSES.flatMap((status) => [
    object(status),
    replayedObject(status),
    object(status, { amount: 1 }),
  ]),
  ...REFUSALS,
];
/** Every kind of answer to a capture or cancel: the whole may have been captured, or the part that is asked for. */
export const CHARGE_EFFECT_OUTCOMES: readonly SendOutcome[] = [
  ...SEND_OUTCOMES,
  object("succeeded", { amountCaptured: EFFECT_AMOUNT }),
  object("canceled", { lapsed: true }),
  object("succeeded", { id: "pi_other" }),
];
export const REFUND_OUTCOMES: readonly RefundSendOutcome[] = [
  ...REFUND_STATUSES.flatMap((status) => [
    refundMade(status),
    refundMade(status, {}, true),
    refundMade(status, { amount: 1 }),
  ]),
  ...REFUSALS,
];
/** Every kind of answer to a question that is about no object. */
const NO_OBJECT: readonly NoObject[] = [
  ABSENT,
  MISSING,
  ...UNANSWERED.flatMap((reason) => [unanswered(reason), unanswered(reason, 3_600_000)]),
];
/** Every kind of answer to a question about a charge. */
export const LOOKUP_OUTCOMES: readonly LookupOutcome[] = [
  ...CHARGE_STATUSES.flatMap((status) => [found(status), found(status, { attemptId: "att_other" })]),
  ...NO_OBJECT,
];
/** Every kind of answer to a question about a capture's or cancel's object. */
export const CHARGE_EFFECT_LOOKUPS: readonly LookupOutcome[] = [
  ...CHARGE_STATUSES.flatMap((status) => [
    found(status),
    found(status, { tenantId: "ten_other" }),
    found(status, { currency: "eur" }),
  ]),
  found("succeeded", { amountCaptured: EFFECT_AMOUNT }),
  found("canceled", { lapsed: true }),
  ...NO_OBJECT,
];
export const REFUND_LOOKUPS: readonly RefundLookupOutcome[] = [
  ...REFUND_STATUSES.flatMap((status) => [
    refundFound(status),
    refundFound(status, { attemptId: "att_other" }),
    refundFound(status, { chargeId: "pi_other" }),
    refundFound(status, { amount: null }),
  ]),
  ...NO_OBJECT,
];
