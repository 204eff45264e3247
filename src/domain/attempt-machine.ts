import { setup } from "xstate";

/** What moves a charge attempt. */
export type AttemptEvent =
  /** A create is about to be sent: recorded before it is, together with the claim. */
  | { type: "ABOUT_TO_CREATE" }
  | { type: "ABOUT_TO_CONFIRM" }
  | { type: "ABOUT_TO_FENCE" }
  /** Every send of the call so far was refused before execution. */
  | { type: "REFUSED_UNEXECUTED" }
  /** An answer that does not tell, a crash, a lease that ended: only a question can tell. */
  | { type: "OUTCOME_UNKNOWN" }
  /** The provider object exists and its id is being committed. */
  | { type: "OBJECT_KNOWN" }
  /** The provider has not decided yet, or the customer must act: ask again on the attempt's own clock. */
  | { type: "FOLLOW" }
  /** Nothing is left to do for this attempt. */
  | { type: "END" };

export type AttemptEventType = AttemptEvent["type"];

/**
 * A charge attempt, as data. Recovery points: `started` (no object id is committed), `charge_created` (it is, and no
 * money has moved as far as we know), `completed`. `…ing` means about to send or sent, and no answer recorded.
 */
export const attemptMachine = setup({
  types: { events: {} as AttemptEvent },
}).createMachine({
  id: "attempt",
  initial: "started",
  states: {
    started: {
      meta: { recoveryPoint: "started" },
      on: { ABOUT_TO_CREATE: "creating", OBJECT_KNOWN: "charge_created", END: "completed" },
    },
    creating: {
      meta: { recoveryPoint: "started" },
      on: {
        REFUSED_UNEXECUTED: "started",
        OUTCOME_UNKNOWN: "create_unknown",
        OBJECT_KNOWN: "charge_created",
        END: "completed",
      },
    },
    create_unknown: {
      meta: { recoveryPoint: "started" },
      on: { ABOUT_TO_CREATE: "creating", OBJECT_KNOWN: "charge_created", END: "completed" },
    },
    charge_created: {
      meta: { recoveryPoint: "charge_created" },
      on: {
        ABOUT_TO_CONFIRM: "confirming",
        ABOUT_TO_FENCE: "fencing",
        FOLLOW: "following",
        END: "completed",
      },
    },
    confirming: {
      meta: { recoveryPoint: "charge_created" },
      on: {
        REFUSED_UNEXECUTED: "charge_created",
        OUTCOME_UNKNOWN: "confirm_unknown",
        ABOUT_TO_FENCE: "fencing",
        FOLLOW: "following",
        END: "completed",
      },
    },
    confirm_unknown: {
      meta: { recoveryPoint: "charge_created" },
      on: {
        ABOUT_TO_CONFIRM: "confirming",
        ABOUT_TO_FENCE: "fencing",
        FOLLOW: "following",
        END: "completed",
      },
    },
    following: {
      meta: { recoveryPoint: "charge_created" },
      on: { ABOUT_TO_FENCE: "fencing", END: "completed" },
    },
    fencing: {
      meta: { recoveryPoint: "charge_created" },
      on: { FOLLOW: "following", END: "completed" },
    },
    // News of an object, or its own clock, lets a completed attempt be asked about again: money may have moved since.
    completed: {
      meta: { recoveryPoint: "completed" },
      on: { ABOUT_TO_FENCE: "fencing", FOLLOW: "following", END: "completed" },
    },
  },
});
