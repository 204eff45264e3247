import type { Change } from "../../../src/domain/charge-change.js";
import type { EarlierRuns } from "../../../src/domain/earlier-runs.js";
import type { Ref } from "../refs.js";
import type { Request } from "./request.js";
import type { AttemptRow, PaymentRow, RefundRow, Tables } from "./rows.js";
import type { Stripe, StripeDispute } from "./stripe-objects.js";
import type { Outcome } from "./wire.js";

/** A worker that drives an attempt. Which process it is does not matter: workers differ by what they hold alone. */
export interface Run {
  /** The attempt's place in the table. */
  readonly at: number;
  /** Set where its fence has moved on: the attempt as it was then. Else it is what the table says. */
  readonly stale: Ref<AttemptRow> | null;
  /** What it last read or wrote of others. */
  readonly payment: Ref<PaymentRow>;
  readonly refund: Ref<RefundRow> | null;
  /** Whose credential it has; null: it could not find out. */
  readonly account: string | null;
  /** As they were when it claimed the attempt: what is known of them stays true. */
  readonly earlierRuns: EarlierRuns;
  readonly step: RunStep;
}

export type RunStep =
  /** It has claimed the attempt and is about to commit what follows from the row alone. */
  | { readonly type: "begins"; readonly markedNow: boolean; readonly change: Ref<Change> }
  /** Its request is under way. */
  | { readonly type: "waits"; readonly request: Ref<Request> }
  /** It was about to confirm, and found the budget over before the call went out. */
  | { readonly type: "is_late" }
  /** Its request has been executed, and the answer is on its way back. */
  | { readonly type: "hears"; readonly request: Ref<Request>; readonly outcome: Ref<Outcome> };

/** Tells runs apart. */
export function textOfRun({ at, stale, payment, refund, account, earlierRuns, step }: Run): string {
  const rows = `${stale?.id ?? ""} ${payment.id} ${refund?.id ?? ""}`;
  return `${at} ${rows} ${account ?? ""} ${earlierRuns} ${textOfStep(step)}`;
}

function textOfStep(step: RunStep): string {
  switch (step.type) {
    case "begins":
      return `begins ${String(step.markedNow)} ${step.change.id}`;
    case "waits":
      return `waits ${step.request.id}`;
    case "is_late":
      return "is_late";
    case "hears":
      return `hears ${step.request.id} ${step.outcome.id}`;
  }
}

/** An attempt that was once accepted, whatever the tables say by now. */
export interface Accepted {
  readonly attemptId: string;
  readonly paymentId: string;
  /** The place of its request in the scenario. */
  readonly request: number;
}

/** Everything, at one moment. */
export interface World {
  /** The present moment's place in the scenario. */
  readonly moment: number;
  /** How many things may still go wrong. */
  readonly faults: number;
  readonly tables: Tables;
  readonly stripe: Ref<Stripe>;
  /** In the order of their ids: two workers that swap places are the same state. */
  readonly runs: readonly Ref<Run>[];
  /** Requests that nobody waits for any more, and that may still be executed. */
  readonly flying: readonly Ref<Request>[];
  /** By the attempts' places, as bits: a send whose outcome nobody knows, and no question answered since. */
  readonly doubts: number;
  /** By the places in the scenario, as bits: what was done at the dashboard. */
  readonly done: number;
  readonly accepted: readonly Accepted[];
  /** What workers have read of disputes and not written yet. */
  readonly readings: readonly Ref<DisputeRead>[];
  /** Since a backup was put back and that was noticed: only asked, until everything has had an answer. */
  readonly recovery: (typeof RECOVERY)[number];
}

/** A dispute as it was when its worker looked. */
export interface DisputeRead {
  readonly dispute: StripeDispute;
  /** The look began after what is kept of the dispute was written. */
  readonly isNewer: boolean;
}

const RECOVERY = ["none", "under_way", "over"] as const;

export function isRecovering({ recovery }: World): boolean {
  return recovery === "under_way";
}

/** Tells worlds apart. Ids are written as one character, or as two where they are large. */
export function keyOf(world: World): string {
  const { tables } = world;
  const ids: number[] = [world.moment, world.faults, world.doubts, world.done, world.stripe.id];
  add(ids, world.runs);
  add(ids, world.flying);
  add(ids, world.readings);
  add(ids, tables.attempts);
  add(ids, tables.payments);
  add(ids, tables.sides);
  add(ids, tables.refunds);
  for (const key of tables.keys) ids.push(key === null ? 0 : key.id + 1);
  ids.push(tables.orders.id, world.accepted.length, RECOVERY.indexOf(world.recovery));
  return textOf(ids);
}

function add(ids: number[], refs: readonly Ref<unknown>[]): void {
  ids.push(refs.length);
  for (const { id } of refs) ids.push(id);
}

const ONE_CHARACTER = 0x8000;

function textOf(ids: readonly number[]): string {
  const units: number[] = [];
  for (const id of ids) {
    if (id < ONE_CHARACTER) units.push(id);
    else units.push(ONE_CHARACTER | (id >> 15), id & 0x7fff);
  }
  return String.fromCharCode(...units);
}

export function sorted<T>(refs: readonly Ref<T>[]): readonly Ref<T>[] {
  return refs.length < 2 ? refs : refs.slice().sort((one, other) => one.id - other.id);
}

export function withRun(world: World, run: Ref<Run>, instead: Ref<Run> | null = null): World {
  const others = instead === null ? world.runs : withoutRun(world, instead).runs;
  return { ...world, runs: sorted([...others, run]) };
}

/** Two workers may be in one state: one of them goes. */
export function withoutRun(world: World, run: Ref<Run>): World {
  const at = world.runs.indexOf(run);
  return { ...world, runs: world.runs.filter((_, place) => place !== at) };
}
