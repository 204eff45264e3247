import { setup } from "xstate";

/** What moves the attempt of a capture, cancel or refund. */
export type EffectEvent =
  /** The call is about to be sent: recorded before it is, with the claim or with a write under the fence. */
  | { type: "ABOUT_TO_SEND" }
  /** Every send so far was refused before execution. */
  | { type: "REFUSED_UNEXECUTED" }
  /** An answer that does not tell, a crash, a lease that ended: only a question can tell. */
  | { type: "OUTCOME_UNKNOWN" }
  /** The provider has it and has not decided yet: a refund on its way. */
  | { type: "FOLLOW" }
  /** Nothing is left to do for this attempt. */
  | { type: "END" };

export type EffectEventType = EffectEvent["type"];

/**
 * The attempt of a single-call effect, as data: from `started` to `completed` with no recovery point between, since the
 * object that it acts on is known from the start. `completed` is looked at again where the provider tells of news.
 */
export const effectMachine = setup({
  types: { events: {} as EffectEvent },
}).createMachine({
  id: "effect",
  initial: "started",
  states: {
    started: {
      meta: { recoveryPoint: "started" },
      on: { ABOUT_TO_SEND: "sending", FOLLOW: "following", END: "completed" },
    },
    sending: {
      meta: { recoveryPoint: "started" },
      on: {
        REFUSED_UNEXECUTED: "started",
        OUTCOME_UNKNOWN: "send_unknown",
        FOLLOW: "following",
        END: "completed",
      },
    },
    send_unknown: {
      meta: { recoveryPoint: "started" },
      on: { ABOUT_TO_SEND: "sending", FOLLOW: "following", END: "completed" },
    },
    following: { meta: { recoveryPoint: "started" }, on: { END: "completed" } },
    completed: { meta: { recoveryPoint: "completed" }, on: { END: "completed" } },
  },
});
