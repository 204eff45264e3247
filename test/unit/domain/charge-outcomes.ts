import type {
  ChargeStatus,
  LookupOutcome,
  NotPerformedReason,
  SendOutcome,
  UnknownReason,
} from "../../../src/domain/provider.js";
import {
  ABSENT,
  decline,
  found,
  MISSING,
  notPerformed,
  object,
  rejection,
  replayedObject,
  unanswered,
  unknown,
} from "./charge-fixtures.js";

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

/** Every kind of answer to a send, with every reason that it can give. */
export const SEND_OUTCOMES: readonly SendOutcome[] = [
  ...CHARGE_STATUSES.flatMap((status) => [
    object(status),
    replayedObject(status),
    object(status, { amount: 1 }),
  ]),
  decline(),
  decline(true),
  rejection(),
  ...NOT_PERFORMED.flatMap((reason) => [notPerformed(reason), notPerformed(reason, 3_600_000)]),
  ...UNKNOWN.flatMap((reason) => [unknown(reason), unknown(reason, true), unknown(reason, false, 30_000)]),
];
/** Every kind of answer to a question. */
export const LOOKUP_OUTCOMES: readonly LookupOutcome[] = [
  ...CHARGE_STATUSES.flatMap((status) => [found(status), found(status, { attemptId: "att_other" })]),
  ABSENT,
  MISSING,
  ...UNANSWERED.flatMap((reason) => [unanswered(reason), unanswered(reason, 3_600_000)]),
];
