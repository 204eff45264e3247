/**
 * What the store's statements and the worker's loop see to, as far as the explorer can do without it. Each is a line of
 * the shipped source: a rule holds in the model while its line stands there, so taking the line out takes the rule out.
 */
const LINES = {
  /** A write of an outcome names the fence that it holds. */
  advanceNamesFence: {
    file: "src/store/advance.ts",
    line: "and a.fence = i.fence and a.state = i.from_state for update",
  },
  /** However old a worker's view of the database is, a send is marked only where it is in its place. */
  marksOnlyInPlace: {
    file: "src/store/advance.ts",
    line: "and (not i.in_place_only or ${isInPlace(db, tells)})",
  },
  /** A look that may be older than what was written since is not believed: the question is put again. */
  oldLooksAreNotBelieved: {
    file: "src/operations/run-attempt.ts",
    line: "if (again !== null) return again;",
  },
  /** What was decided in time and would go out too late does not. */
  lateCallsAreNotMade: {
    file: "src/operations/run-attempt.ts",
    line: "if (isTooLate({ ...held.view, now: held.now() }, call)) return commit(deps, held, leftUnsent, null);",
  },
  /** Only an attempt within its budget is sent at once; an older one is asked about first. */
  freshIsYoung: {
    file: "src/store/attempts.ts",
    line: "and a.created_at > now() - ${request.retryBudgetMs}::float8 * interval '1 millisecond'",
  },
  /** A later run of a key is asked about first. */
  freshIsFirstRun: {
    file: "src/store/attempts.ts",
    line: "a.state = 'started' and a.run = 1 and a.livemode = ${request.livemode}",
  },
  /** Where a run's money moved after all, its key has its answer and runs no more. */
  moneyAnswersTheKey: {
    file: "src/store/advance.ts",
    line: "and (k.state = 'in_progress' or (k.state = 'failed_retryable' and w.state = 'completed'))",
  },
  /** Only an attempt of the worker's own account is sent at once. */
  freshIsOurAccount: {
    file: "src/store/attempts.ts",
    line: "and coalesce(a.provider_account, ${request.account}::text) = ${request.account}::text",
  },
  /** While the database recovers, nothing new is accepted: no payment, and nothing that follows one. */
  recoveryAcceptsNothing: {
    file: "src/operations/create-payment.ts",
    line: "const first = deps.recovery.isRecovering() ? null : await runFirst(deps, request);",
  },
  recoveryAcceptsNoEffect: {
    file: "src/operations/request-effect.ts",
    line: "deps.recovery.refuseWhileRecovering();",
  },
  /** An attempt that was made again from its object keeps its key from being accepted anew. */
  acceptMindsAttempts: {
    file: "src/store/accept.ts",
    line: "where not exists (select from attempts a where a.tenant_id = i.tenant_id and a.id = i.attempt_id offset 0)",
  },
  /** The same for the attempts of a lost key's other runs. */
  acceptMindsOtherRuns: {
    file: "src/store/accept.ts",
    line: "and place.in_place and (i.other_runs is not null or not place.has_recovered)",
  },
  /** An order id that is held accepts no other payment. */
  acceptMindsOrderIds: {
    file: "src/store/accept.ts",
    line: "insert into order_ids (tenant_id, merchant_order_id, payment_id)\n      select tenant_id, merchant_order_id, payment_id from fresh where merchant_order_id is not null",
  },
} as const;

export type Rules = Readonly<Record<keyof typeof LINES, boolean>>;

/** `read` gives a source's text; `shipped` is what stands in the checkout, where every line must be, once. */
export function rulesOf(read: (file: string) => string, shipped: (file: string) => string): Rules {
  const rules = Object.entries(LINES).map(([name, { file, line }]) => {
    if (shipped(file).split(line).length !== 2) {
      throw new Error(
        `${file} does not hold the line of ${name} once: look at the model's store and workers again`,
      );
    }
    return [name, read(file).includes(line)];
  });
  return Object.fromEntries(rules) as Rules;
}
