import type { Difference } from "../domain/finding.js";
import type { LookupOutcome } from "../domain/provider.js";
import type { Moment, SettledBefore } from "../domain/reconcile.js";
import { withDatabase } from "../store/db.js";
import type { ClaimedEvent } from "../store/provider-events.js";
import {
  type ClaimedRun,
  commitStep,
  type FoundDifference,
  type Run,
  type RunTrigger,
  renewRun,
} from "../store/reconciliation.js";
import type { Deps } from "./deps.js";
import { askProvider, type ProviderAnswer, RECONCILIATION } from "./provider-event-steps.js";

/** What a run goes through, in this order. */
export const PHASES = [
  "charges",
  "refunds",
  "disputes",
  "transactions",
  "events",
  "payouts",
  "attempts",
  "verify",
] as const;
export type Phase = (typeof PHASES)[number];

/** What was lost with rows, and would not come again. */
const ONLY_IN_RECOVERY: ReadonlySet<Phase> = new Set<Phase>(["payouts", "attempts"]);

export function phasesOf(trigger: RunTrigger): readonly Phase[] {
  return PHASES.filter((phase) => !ONLY_IN_RECOVERY.has(phase) || trigger === "recover");
}

/** Where a run is within its phase: what its cursor column holds, as JSON. */
export interface Position {
  /** The provider's cursor; null: the first page. */
  readonly after: string | null;
  /** The objects of this page are compared, and some of our rows of its time are left. */
  readonly isCompared: boolean;
  /** Our rows from this id on are compared; null: none is. */
  readonly before: string | null;
  /** Steps in a row that the provider did not answer. */
  readonly failures: number;
  /** Phases that our credential may not read. */
  readonly skipped: readonly Phase[];
  /** Objects about which the provider does not answer, though it does about others, and such as cannot be read. */
  readonly leftOut: readonly string[];
  /** When the present phase began to wait for something, RFC 3339. */
  readonly since: string | null;
  /** The provider wants no question before then, RFC 3339. */
  readonly notBefore: string | null;
}

const BEGINNING: Position = {
  after: null,
  isCompared: false,
  before: null,
  failures: 0,
  skipped: [],
  leftOut: [],
  since: null,
  notBefore: null,
};

export function positionOf({ cursor }: Run): Position {
  return cursor === null ? BEGINNING : { ...BEGINNING, ...(JSON.parse(cursor) as Partial<Position>) };
}

/** The beginning of the phase after this one. */
export function nextPhase({ skipped, leftOut }: Position): Position {
  return { ...BEGINNING, skipped, leftOut };
}

/** So often a step is made again for the sake of one object. */
const MOST_TRIES_FOR_ONE = 2;
/** As many as a person reads. */
const MOST_NAMED = 20;

/** What one step brought. */
export interface PhaseStep {
  /** Objects of the provider's that were compared. */
  readonly objects: number;
  readonly findings: readonly FoundDifference[];
  /** Where it goes on; null: the phase is over. */
  readonly position: Position | null;
  /** There is nothing to do before something else has happened. */
  readonly waits?: true;
}

type UnansweredOutcome = Extract<LookupOutcome, { readonly type: "unanswered" }>;

function isUnanswered(answer: ProviderAnswer): answer is UnansweredOutcome {
  return answer.type === "unanswered";
}

/** The provider did not answer, so the step is made again. */
export class Unanswered extends Error {
  override readonly name = "Unanswered";
  constructor(
    readonly reason: string,
    readonly retryAfterMs: number | null,
  ) {
    super(`the provider did not answer: ${reason}`);
  }
}

/** Somebody else has taken the run over. */
export class RunLost extends Error {
  override readonly name = "RunLost";
}

/** Ids that a page and those before it have shown: a row whose object is among them need not be asked about. */
export class RecentObjects {
  #name = "";
  readonly #ids = new Set<string>();

  /** Forgets what another run or phase has seen. */
  of(run: Run): this {
    const name = `${run.id} ${run.phase}`;
    if (name !== this.#name) this.#ids.clear();
    this.#name = name;
    return this;
  }

  add(ids: Iterable<string>): void {
    for (const id of ids) this.#ids.add(id);
    for (const id of this.#ids) {
      if (this.#ids.size <= MOST_REMEMBERED) break;
      this.#ids.delete(id);
    }
  }

  has(id: string): boolean {
    return this.#ids.has(id);
  }
}

/** Some pages: our clock and the provider's seldom differ by more than one. What is forgotten is asked about. */
const MOST_REMEMBERED = 2_000;

/** A comparison in this process's hands. */
export class HeldRun {
  #run: ClaimedRun;
  #renewedAtMs: number;
  readonly #leftOut = new Set<string>();

  constructor(
    readonly deps: Deps,
    claimed: ClaimedRun,
    readonly recent: RecentObjects,
  ) {
    this.#run = claimed;
    this.#renewedAtMs = deps.clock.monotonicMs();
  }

  get run(): ClaimedRun {
    return this.#run;
  }

  /**
   * Commits what a step has found before anything is done about it: of a run that dies in between, the next owner finds
   * it mended, and says so. Throws RunLost.
   */
  async record(differences: readonly Difference[]): Promise<void> {
    const { deps, run } = this;
    const { phase, cursor, error } = run;
    const findings = differences.map(({ repair: _repair, ...found }) => ({
      ...found,
      state: "open" as const,
    }));
    const leaseMs = deps.settings.attemptLeaseMs;
    const renewedAtMs = deps.clock.monotonicMs();
    const step = { phase, cursor, state: "running" as const, objects: 0, error, leaseMs, findings };
    if (!(await withDatabase(() => commitStep(deps.db.sql, run, step)))) throw new RunLost();
    this.#run = { ...run, pages: run.pages + 1 };
    this.#renewedAtMs = renewedAtMs;
  }

  /** What changed here after it is not compared with a list that may be older; after a restore, all is old. */
  get settledBefore(): SettledBefore {
    const { claimedAt, trigger } = this.run;
    return trigger === "recover" ? null : new Date(claimedAt.getTime() - this.deps.settings.reconcileLagMs);
  }

  get moment(): Moment {
    const keysGoneBefore = new Date(this.run.claimedAt.getTime() - this.deps.settings.providerKeyLifetimeMs);
    const isRestored = this.run.trigger === "recover";
    return { settledBefore: this.settledBefore, keysGoneBefore, isRestored };
  }

  get account() {
    const { provider } = this.deps;
    return { provider: provider.name, account: this.run.account, livemode: provider.livemode };
  }

  /** Repairs are made by what applies the provider's events; this stands for the event, and is no row of the inbox. */
  eventAbout(objectId: string): ClaimedEvent {
    return {
      provider: this.run.provider,
      eventId: this.run.id,
      type: RECONCILIATION,
      livemode: this.deps.provider.livemode,
      objectId,
      payload: "",
      tries: 1,
      receivedAt: this.run.claimedAt,
      outcome: null,
      claimedAt: this.run.claimedAt,
    };
  }

  /** Before anything that takes long. Throws RunLost where somebody else has taken the run over. */
  async keep(): Promise<void> {
    const { deps, run } = this;
    const heldForMs = deps.clock.monotonicMs() - this.#renewedAtMs;
    if (heldForMs < deps.settings.attemptLeaseMs / 4) return;
    const renewedAtMs = deps.clock.monotonicMs();
    if (!(await withDatabase(() => renewRun(deps.db.sql, run, deps.settings.attemptLeaseMs)))) {
      throw new RunLost();
    }
    this.#renewedAtMs = renewedAtMs;
  }

  /** What this step has left out, behind what was left out before it. */
  get leftOut(): readonly string[] {
    return [...new Set([...positionOf(this.run).leftOut, ...this.#leftOut])].slice(0, MOST_NAMED);
  }

  /** Nothing can be told of these objects, and the report says that. */
  leaveOut(objectIds: readonly string[]): void {
    for (const id of objectIds) this.#leftOut.add(id);
  }

  /**
   * A question about one object, which must not hide all others behind it. Null: it has had no answer each time that the
   * step was made, and is left out. Throws Unanswered, RunLost.
   */
  async askAbout<Answered extends ProviderAnswer>(
    objectId: string,
    name: string,
    question: () => Promise<Answered | UnansweredOutcome>,
  ): Promise<Answered | null> {
    try {
      return await this.ask(name, question);
    } catch (error) {
      if (!(error instanceof Unanswered) || error.reason === "rate_limited") throw error;
      if (positionOf(this.run).failures < MOST_TRIES_FOR_ONE) throw error;
      this.leaveOut([objectId]);
      return null;
    }
  }

  /** One question, under the lease. Throws Unanswered, RunLost. */
  async ask<Answered extends ProviderAnswer>(
    name: string,
    question: () => Promise<Answered | UnansweredOutcome>,
  ): Promise<Answered> {
    await this.keep();
    const answer = await askProvider(this.deps, name, question);
    if (isUnanswered(answer)) throw new Unanswered(answer.reason, answer.retryAfterMs);
    return answer;
  }
}
