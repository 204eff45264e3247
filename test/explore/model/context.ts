import type { Attempt } from "../../../src/domain/attempt.js";
import type { Change, ChargePolicy } from "../../../src/domain/charge-change.js";
import type { Payment } from "../../../src/domain/payment.js";
import type { Refund } from "../../../src/domain/refund.js";
import type { Code } from "../patched.js";
import { Memo, type Ref, Refs } from "../refs.js";
import { agesOf, policyWith } from "./clock.js";
import type { Decided, First } from "./decided.js";
import type { Request } from "./request.js";
import type {
  AttemptRow,
  EffectRows,
  KeyRow,
  PaymentRow,
  RefundRow,
  SideRow,
  Tables,
  Write,
} from "./rows.js";
import type { Scenario } from "./scenario.js";
import type { Reply, Stripe } from "./stripe-objects.js";
import type { Outcome } from "./wire.js";
import { type DisputeRead, type Run, textOfRun } from "./world.js";

/** What a search has at hand: the code that it drives, what it searches, and what it has worked out so far. */
export interface Context extends Code {
  readonly scenario: Scenario;
  readonly policy: ChargePolicy;
  /** Where the search starts, once that is known. */
  readonly start: { tables: Tables | null };
  readonly ages: ReturnType<typeof agesOf>;
  /** When the scenario's n-th moment is, in milliseconds since the start. */
  atMs(moment: number): number;
  readonly refs: {
    readonly attempts: Refs<AttemptRow>;
    readonly payments: Refs<PaymentRow>;
    readonly sides: Refs<SideRow>;
    readonly refunds: Refs<RefundRow>;
    readonly keys: Refs<KeyRow>;
    readonly orders: Refs<Readonly<Record<string, string>>>;
    readonly changes: Refs<Change>;
    readonly writes: Refs<Write>;
    readonly stripe: Refs<Stripe>;
    readonly requests: Refs<Request>;
    readonly replies: Refs<Reply>;
    readonly outcomes: Refs<Outcome>;
    readonly runs: Refs<Run>;
    readonly readings: Refs<DisputeRead>;
  };
  readonly memos: {
    readonly attemptId: Memo<string>;
    readonly accepted: Memo<{ readonly payment: Ref<PaymentRow>; readonly attempt: Ref<AttemptRow> }>;
    readonly acceptedEffect: Memo<EffectRows>;
    readonly attempt: Memo<Attempt>;
    readonly payment: Memo<Payment>;
    readonly refund: Memo<Refund | null>;
    readonly moved: Memo<Ref<AttemptRow>>;
    readonly paid: Memo<Ref<PaymentRow>>;
    readonly told: Memo<Ref<SideRow>>;
    readonly outcome: Memo<Ref<Outcome>>;
    readonly executed: Memo<{ readonly stripe: Ref<Stripe>; readonly reply: Ref<Reply> }>;
    readonly decided: Memo<Decided>;
    readonly claimed: Memo<{ readonly attempt: Ref<AttemptRow>; readonly markedNow: boolean }>;
    readonly nudged: Memo<Ref<AttemptRow>>;
    readonly over: Memo<Ref<AttemptRow>>;
    readonly first: Memo<First>;
    readonly agedAttempt: Memo<Ref<AttemptRow>>;
    readonly agedPayment: Memo<Ref<PaymentRow>>;
    readonly agedRefund: Memo<Ref<RefundRow>>;
    readonly agedStripe: Memo<Ref<Stripe>>;
  };
}

export function contextOf(code: Code, scenario: Scenario): Context {
  const policy = policyWith(scenario.customerActionExpiryMs);
  return {
    ...code,
    scenario,
    policy,
    start: { tables: null },
    ages: agesOf(policy, scenario.longestFlightMs),
    atMs(moment) {
      const at = scenario.moments[moment];
      if (at === undefined) throw new Error(`the scenario has no moment ${moment}`);
      return at.atMs;
    },
    refs: {
      attempts: new Refs(),
      payments: new Refs(),
      sides: new Refs(),
      refunds: new Refs(),
      keys: new Refs(),
      orders: new Refs(),
      changes: new Refs(),
      writes: new Refs(),
      stripe: new Refs(),
      requests: new Refs(),
      replies: new Refs(),
      outcomes: new Refs(),
      runs: new Refs(textOfRun),
      readings: new Refs(),
    },
    memos: {
      attemptId: new Memo(),
      accepted: new Memo(),
      acceptedEffect: new Memo(),
      attempt: new Memo(),
      payment: new Memo(),
      refund: new Memo(),
      moved: new Memo(),
      paid: new Memo(),
      told: new Memo(),
      outcome: new Memo(),
      executed: new Memo(),
      decided: new Memo(),
      claimed: new Memo(),
      nudged: new Memo(),
      over: new Memo(),
      first: new Memo(),
      agedAttempt: new Memo(),
      agedPayment: new Memo(),
      agedRefund: new Memo(),
      agedStripe: new Memo(),
    },
  };
}
