import { PawlError } from "../domain/errors.js";
import { newId } from "../lib/ids.js";
import { errorText } from "../lib/log.js";
import { withDatabase } from "../store/db.js";
import {
  type ClaimedRun,
  claimRun,
  commitStep,
  insertRun,
  purgeReconciliation,
  type Run,
  readRun,
  startDueRun,
} from "../store/reconciliation.js";
import { endRecovery } from "../store/recovery.js";
import {
  compareDisputes,
  compareTransactions,
  takePayouts,
  takeUndelivered,
} from "./compare-after-charge.js";
import { compareCharges } from "./compare-charges.js";
import { compareRefunds } from "./compare-refunds.js";
import type { Deps } from "./deps.js";
import {
  HeldRun,
  nextPhase,
  type Phase,
  type PhaseStep,
  type Position,
  phasesOf,
  positionOf,
  RecentObjects,
  RunLost,
  Unanswered,
} from "./reconcile-run.js";
import { accountsAwaited, startDueRecovery, waitForAttempts } from "./recover.js";
import { verifyFindings } from "./verify-findings.js";

const PHASE_STEPS: Readonly<Record<Phase, (held: HeldRun, position: Position) => Promise<PhaseStep>>> = {
  charges: compareCharges,
  refunds: compareRefunds,
  disputes: compareDisputes,
  transactions: compareTransactions,
  events: takeUndelivered,
  payouts: takePayouts,
  attempts: waitForAttempts,
  verify: verifyFindings,
};

/** Steps in a row that come to nothing, after which the run has failed; the next one begins anew. */
const MOST_FAILURES = 20;
/** How long ended runs and closed findings are kept. */
const KEPT_MS = 90 * 86_400_000;
const PURGED_AT_ONCE = 2_000;
/** At the start of one run: an account whose objects all differed leaves as many findings as it has objects. */
const MOST_PURGES = 20;
/** Between two looks at what a run waits for, where somebody waits for the run; twice as long after each failure. */
const LOOK_AGAIN_MS = 500;
const MOST_DOUBLINGS = 5;
/** A provider that wants to be left alone for longer is asked all the same. */
const LONGEST_REST_MS = 300_000;
/** Without them a recovery has taken nothing in, and must not let anybody send again. */
const NEEDED_TO_RECOVER: readonly Phase[] = ["charges", "refunds"];
const MOST_ERROR_CHARACTERS = 200;

const NOTHING = { objects: 0, findings: [] } as const;

/** Null: all was. */
function notCompared({ skipped, leftOut }: Position): string | null {
  const why = [
    skipped.length === 0 ? [] : `since the key may not read it: ${skipped.join(", ")}`,
    leftOut.length === 0 ? [] : `since there was no answer about it that can be read: ${leftOut.join(", ")}`,
  ].flat();
  return why.length === 0 ? null : `not compared, ${why.join("; ")}`;
}

/** Milliseconds since 1970; 0: the provider may be asked. */
function restsUntil({ notBefore }: Position): number {
  return notBefore === null ? 0 : Date.parse(notBefore);
}

/** `idle`: nothing to do, or somebody else is at it. */
export type StepResult = "again" | "wait" | "ended" | "idle";

/** The comparisons with the provider that this process has a hand in: one step at a time, each committed. */
export class Comparison {
  readonly #recent = new RecentObjects();

  constructor(private readonly deps: Deps) {}

  /** One round of the worker: begins what is due, takes one step. True: there is more at once. */
  async round(): Promise<boolean> {
    const account = await this.#account();
    if (account === null) return false;
    if (this.deps.recovery.isRecovering()) await startDueRecovery(this.deps, account);
    else await this.#startDue(account);
    return (await this.step(null)) === "again";
  }

  /** A comparison of a window, asked for by a person; yields its id. Throws service_unavailable without an account. */
  async begin(window: { readonly from: Date; readonly to: Date }): Promise<string> {
    const account = await this.accountOrThrow();
    const id = newId("rec");
    const { db, provider } = this.deps;
    await withDatabase(() =>
      insertRun(db.sql, {
        provider: provider.name,
        id,
        account,
        trigger: "command",
        windowFrom: window.from,
        windowTo: window.to,
        phase: "charges",
      }),
    );
    return id;
  }

  /** Takes steps of this run until it has ended, whoever ends it; `onStep` is told how far it is. */
  async drive(id: string, onStep: (run: Run) => void = () => undefined): Promise<Run> {
    for (;;) {
      const result = await this.step(id);
      const run = await withDatabase(() => readRun(this.deps.db.sql, this.deps.provider.name, id));
      if (run === null) throw new Error(`the run ${id} is missing`);
      onStep(run);
      if (run.state !== "running") return run;
      const { failures } = positionOf(run);
      const ms = LOOK_AGAIN_MS * 2 ** Math.min(failures, MOST_DOUBLINGS);
      if (result !== "again") await this.deps.clock.sleep(ms);
    }
  }

  /** One step of the named run, or of whichever is there. */
  async step(id: string | null): Promise<StepResult> {
    const { deps } = this;
    const account = await this.accountOrThrow();
    const run = await withDatabase(() =>
      claimRun(deps.db.sql, {
        provider: deps.provider.name,
        account,
        owner: deps.workerName,
        leaseMs: deps.settings.attemptLeaseMs,
        id,
      }),
    );
    if (run === null) return "idle";
    if (restsUntil(positionOf(run)) > run.claimedAt.getTime()) return "wait";
    const held = new HeldRun(deps, run, this.#recent.of(run));
    const phase = phasesOf(run.trigger).find((name) => name === run.phase);
    if (phase === undefined) throw new Error(`run ${run.id} is in the unknown phase ${run.phase}`);
    try {
      const step = await PHASE_STEPS[phase](held, positionOf(run));
      await deps.probe("before_page_committed");
      return await this.#commit(held, phase, step);
    } catch (error) {
      if (error instanceof RunLost) return "idle";
      if (!(error instanceof Unanswered)) {
        deps.log.error({ err: error, run: run.id, phase }, "reconciliation: a step failed");
        // A step that can never be made must not keep every later comparison from beginning.
        return this.#afterFailure(held.run, phase, `failed here: ${errorText(error)}`, null);
      }
      if (this.#mayBeLeftOut(run, phase, error.reason)) return this.#leaveOut(held.run, phase);
      const reason = `the provider did not answer (${error.reason})`;
      return this.#afterFailure(held.run, phase, reason, error.retryAfterMs);
    }
  }

  async #commit(held: HeldRun, phase: Phase, step: PhaseStep): Promise<StepResult> {
    const { run, leftOut } = held;
    if (step.position !== null) {
      const isWritten = await this.#write(run, phase, { ...step.position, leftOut }, step);
      return !isWritten ? "idle" : step.waits === true ? "wait" : "again";
    }
    const phases = phasesOf(run.trigger);
    const next = phases[phases.indexOf(phase) + 1];
    const position = { ...nextPhase(positionOf(run)), leftOut };
    if (next !== undefined) return (await this.#write(run, next, position, step)) ? "again" : "idle";
    if (run.trigger === "recover") return this.#completeRecovery(held, phase, step);
    return (await this.#write(run, phase, position, step, "completed")) ? "ended" : "idle";
  }

  async #completeRecovery(held: HeldRun, phase: Phase, step: PhaseStep): Promise<StepResult> {
    const { run, deps } = held;
    const position = nextPhase(positionOf(run));
    // Under the lease, and before the run has ended: one that dies in between is ended by the next owner.
    await held.keep();
    const isOver = await withDatabase(() => endRecovery(deps.db.sql, run));
    await deps.probe("before_recovery_completed");
    const isWritten = await this.#write(run, phase, position, step, "completed");
    // Of two that end at once each has seen the other still running: the last one ends it.
    if (isWritten && !isOver) await withDatabase(() => endRecovery(deps.db.sql, run));
    await deps.recovery.check();
    const awaited = deps.recovery.isRecovering() ? await accountsAwaited(deps) : [];
    if (awaited.length > 0)
      deps.log.warn({ accounts: awaited }, "recovering: other accounts are to be compared");
    return isWritten ? "ended" : "idle";
  }

  #mayBeLeftOut({ trigger }: ClaimedRun, phase: Phase, reason: string): boolean {
    const isNeeded = trigger === "recover" && NEEDED_TO_RECOVER.includes(phase);
    return reason === "forbidden" && !isNeeded && phasesOf(trigger).at(-1) !== phase;
  }

  /** Without the permission to read a list: on with the next one. */
  async #leaveOut(run: ClaimedRun, phase: Phase): Promise<StepResult> {
    const position = positionOf(run);
    const phases = phasesOf(run.trigger);
    const next = phases[phases.indexOf(phase) + 1] ?? phase;
    const skipped = { ...nextPhase(position), skipped: [...position.skipped, phase] };
    return (await this.#write(run, next, skipped, NOTHING)) ? "again" : "idle";
  }

  /** The same step again, later. */
  async #afterFailure(
    run: ClaimedRun,
    phase: Phase,
    reason: string,
    restMs: number | null,
  ): Promise<StepResult> {
    const failures = positionOf(run).failures + 1;
    const rest = Math.min(restMs ?? 0, LONGEST_REST_MS);
    const notBefore = rest === 0 ? null : new Date(run.claimedAt.getTime() + rest).toISOString();
    const position = { ...positionOf(run), failures, notBefore };
    const state = failures < MOST_FAILURES ? "running" : "failed";
    const error = `${phase}: ${reason}`.slice(0, MOST_ERROR_CHARACTERS);
    this.deps.log.warn({ run: run.id, phase, reason, failures }, "reconciliation: a step is made again");
    const isWritten = await this.#write(run, phase, position, NOTHING, state, error);
    return !isWritten ? "idle" : state === "failed" ? "ended" : "wait";
  }

  async #write(
    run: ClaimedRun,
    phase: Phase,
    position: Position,
    step: Pick<PhaseStep, "objects" | "findings">,
    state: Run["state"] = "running",
    error: string | null = null,
  ): Promise<boolean> {
    const isWritten = await withDatabase(() =>
      commitStep(this.deps.db.sql, run, {
        phase,
        cursor: JSON.stringify(position),
        state,
        objects: step.objects,
        findings: step.findings,
        error: error ?? notCompared(position),
        leaseMs: this.deps.settings.attemptLeaseMs,
      }),
    );
    if (state !== "running")
      this.deps.log.info({ run: run.id, trigger: run.trigger, state }, "reconciliation ended");
    await this.deps.probe("after_page_committed");
    return isWritten;
  }

  async #startDue(account: string): Promise<void> {
    const { db, provider, settings } = this.deps;
    const isStarted = await withDatabase(() =>
      startDueRun(db.sql, {
        provider: provider.name,
        account,
        everyMs: settings.reconcileEveryMs,
        windowMs: settings.reconcileWindowMs,
        lagMs: settings.reconcileLagMs,
        phase: "charges",
      }),
    );
    for (let purges = 0; isStarted && purges < MOST_PURGES; purges += 1) {
      const purged = await withDatabase(() => purgeReconciliation(db.sql, KEPT_MS, PURGED_AT_ONCE));
      if (purged < PURGED_AT_ONCE) return;
    }
  }

  async #account(): Promise<string | null> {
    const view = await this.deps.account.resolve();
    return view.type === "known" ? view.accountId : null;
  }

  /** Throws service_unavailable where the provider does not tell whose credential this is. */
  async accountOrThrow(): Promise<string> {
    const account = await this.#account();
    if (account !== null) return account;
    throw new PawlError("service_unavailable", "The provider does not tell which account this is.");
  }
}
