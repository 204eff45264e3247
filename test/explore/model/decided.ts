import type { Change } from "../../../src/domain/charge-change.js";
import type { EarlierRuns } from "../../../src/domain/earlier-runs.js";
import type { Ref } from "../refs.js";
import type { Request } from "./request.js";
import type { AttemptRow, PaymentRow, RefundRow, Write } from "./rows.js";
import type { Outcome } from "./wire.js";

/** The rows that a decision is made from. */
export interface Reading {
  readonly attempt: Ref<AttemptRow>;
  readonly payment: Ref<PaymentRow>;
  /** Of a refund's attempt. */
  readonly refund: Ref<RefundRow> | null;
}

/** What is known beside the rows. */
export interface Knowledge {
  readonly earlierRuns: EarlierRuns;
  /** The database was restored, and it has been noticed. */
  readonly recovering: boolean;
}

export type Known = Reading & Knowledge;

/** What is decided about. */
export type Occasion =
  /** A claimed attempt whose row alone says what is to be written first. */
  | {
      readonly type: "begins";
      readonly markedNow: boolean;
      /** As it was decided when it was claimed. */
      readonly change: Ref<Change>;
      readonly account: string | null;
    }
  /** A call that was decided in time and would go out too late. */
  | { readonly type: "is_late"; readonly account: string }
  | { readonly type: "hears"; readonly request: Ref<Request>; readonly outcome: Ref<Outcome> };

export interface Decided {
  /** What is written; null: the shipped code threw. */
  readonly write: Ref<Write> | null;
  /** What goes out next; null: the lease is given back, or nothing is left to do. */
  readonly request: Ref<Request> | null;
  /** It is too late for the call: it does not go out. */
  readonly isLate: boolean;
  /** The database recovers: the call does not go out, and the worker is told so. */
  readonly isKeptBack: boolean;
  /** What is wrong with it, in words. */
  readonly fault: string | null;
}

/** What a worker does first with what it has claimed. */
export type First =
  | { readonly type: "calls"; readonly request: Ref<Request> }
  | { readonly type: "commits"; readonly change: Ref<Change> };
