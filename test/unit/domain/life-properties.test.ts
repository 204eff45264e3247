import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { EffectRequest } from "../../../src/domain/admit-effect.js";
import { BUDGET_MS, HELD_LOOK_MS, KEY_LIFETIME_MS, LONGEST_WAIT_MS } from "./charge-fixtures.js";
import { balancesOf } from "./ledger-sums.js";
import { FINE, Life, type LifeEntry, type LifeWeather, type Work } from "./life-driver.js";
import { EFFECT_FAULTS, EFFECT_VERDICTS, OUTSIDE, VERDICTS } from "./model-provider.js";

const RUNS = 600;
/** Rounds in calm weather within which everything must have ended that a machine may end. */
const MOST_CALM_ROUNDS = 60;
/** By then whoever could still capture, cancel or pay has had the time to. */
const LAPSE_ROUND = 20;

const weather: fc.Arbitrary<LifeWeather> = fc.record({
  send: fc.oneof(fc.constant("none" as const), { weight: 2, arbitrary: fc.constantFrom(...EFFECT_FAULTS) }),
  verdict: fc.constantFrom(...VERDICTS),
  effect: fc.oneof(
    { weight: 2, arbitrary: fc.constant("done" as const) },
    fc.constantFrom(...EFFECT_VERDICTS),
  ),
  answers: fc.oneof({ weight: 3, arbitrary: fc.constant(true) }, fc.boolean()),
  outside: fc.oneof({ weight: 6, arbitrary: fc.constant("nothing" as const) }, fc.constantFrom(...OUTSIDE)),
  dies: fc.oneof({ weight: 5, arbitrary: fc.constant(false) }, fc.boolean()),
  arrives: fc.boolean(),
  accountKnown: fc.oneof({ weight: 8, arbitrary: fc.constant(true) }, fc.boolean()),
  tookMs: fc.constantFrom(5, 200, 20_000),
});
const request: fc.Arbitrary<EffectRequest> = fc.oneof(
  fc.record({ kind: fc.constant("capture" as const), amount: fc.constantFrom(null, 1_000, 1_500, 4_200) }),
  fc.record({ kind: fc.constant("cancel" as const), reason: fc.constant(null) }),
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("refund" as const),
      amount: fc.constantFrom(null, 500, 1_000, 2_100),
      reason: fc.constant(null),
      metadata: fc.constant({}),
    }),
  },
);
const which = fc.nat({ max: 4 });

type Action =
  | { readonly type: "step"; readonly which: number; readonly weather: LifeWeather }
  | { readonly type: "request"; readonly request: EffectRequest }
  | { readonly type: "nudge"; readonly which: number }
  | { readonly type: "pass"; readonly ms: number };

const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 16, arbitrary: fc.record({ type: fc.constant("step" as const), which, weather }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("request" as const), request }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("nudge" as const), which }) },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant("pass" as const),
      ms: fc.constantFrom(1_000, BUDGET_MS, KEY_LIFETIME_MS, KEY_LIFETIME_MS + 4_000_000),
    }),
  },
);

interface Story {
  readonly start: "authorized" | "succeeded" | "requires_action";
  readonly isManual: boolean;
  /** Made together, right after the charge. */
  readonly requests: readonly EffectRequest[];
  readonly actions: readonly Action[];
}
const story: fc.Arbitrary<Story> = fc.record({
  start: fc.constantFrom("authorized", "succeeded", "requires_action"),
  isManual: fc.boolean(),
  requests: fc.array(request, { minLength: 1, maxLength: 4 }),
  actions: fc.array(action, { maxLength: 60, size: "max" }),
});

/** The last from the end, so that the newest attempts get as much trouble as the charge. */
function workAt({ works }: Life, at: number): Work {
  const work = works[works.length - 1 - (at % works.length)];
  if (work === undefined) throw new Error("a payment has its charge");
  return work;
}

function act(life: Life, one: Action): void {
  switch (one.type) {
    case "step": {
      const work = workAt(life, one.which);
      // A look that is due in hours does not make time pass for the others.
      if (work.next === null && life.msUntilDue(work) > LONGEST_WAIT_MS) return;
      return life.step(work, one.weather);
    }
    case "request":
      life.request(one.request);
      return;
    case "nudge":
      return life.nudge(workAt(life, one.which));
    case "pass":
      return life.pass(one.ms);
  }
}

/** Everybody answers, nobody dies, time goes on, and the provider tells of all its news. */
function calm(life: Life): void {
  let told = false;
  for (let round = 0; round < MOST_CALM_ROUNDS; round += 1) {
    const { provider } = life;
    provider.arrive();
    if (provider.status === "pending") provider.outside("pays");
    if (round > LAPSE_ROUND) provider.outside(provider.status === "authorized" ? "lapses" : "cancels");
    if (round === LAPSE_ROUND || told) provider.outside("settles_refunds");
    const due = life.works.filter(({ next, dueMs }) => next !== null || dueMs !== null);
    if (due.every(isStuck)) {
      if (told) return;
      told = true;
      for (const work of life.works) life.nudge(work);
    }
    for (const work of due) life.claim(work);
  }
}

function live({ start, isManual, requests, actions }: Story): Life {
  const life = new Life(isManual || start === "authorized");
  const [charge] = life.works;
  if (charge === undefined) throw new Error("a payment has its charge");
  life.claim(charge, { ...FINE, verdict: start });
  for (const one of requests) life.request(one);
  for (const one of actions) act(life, one);
  calm(life);
  return life;
}

function always(check: (life: Life) => void): void {
  fc.assert(
    fc.property(story, (one) => check(live(one))),
    { numRuns: RUNS },
  );
}

const writesOf = ({ log }: Life) => log.filter((entry) => entry.type === "write");
const effectsOf = ({ works }: Life) => works.filter(({ attempt }) => attempt.kind !== "charge");
const executedOf = ({ provider }: Life, { attempt }: Work) => provider.executed.get(attempt.id) ?? 0;
/** What only a person may end: a refund that is not there, and could be made twice if it were sent again. */
const isStuck = ({ refund, attempt }: Work) =>
  refund?.status === "needs_review" && refund.providerRefundId === null && attempt.state === "send_unknown";

/** Sends of the attempt with no answered question since the last one, although not all before were refused. */
function blindSends(log: readonly LifeEntry[], attemptId: string): LifeEntry[] {
  let allRefused = true;
  let asked = true;
  return log.filter((entry) => {
    if (entry.type === "write" || entry.attemptId !== attemptId) return false;
    if (entry.type === "question") {
      asked ||= entry.answered;
      return false;
    }
    const blind = !allRefused && !asked;
    allRefused = allRefused && entry.outcome === "not_performed";
    asked = false;
    return blind;
  });
}

// Each property lives the same kinds of lives; an IllegalTransition or a fact that cannot be posted fails every one.
describe("whatever happens to the captures, cancels and refunds of a payment", () => {
  it("all end once the provider answers again, save a refund that only a person may end", () => {
    always((life) => {
      const open = life.works.filter(({ attempt }) => attempt.state !== "completed");
      expect(
        open.filter((work) => !isStuck(work)).map(({ attempt }) => [attempt.kind, attempt.state]),
      ).toEqual([]);
      for (const work of open) expect(life.provider.refunds.get(work.attempt.id)).toBeUndefined();
    });
  });

  it("each has at most one effect at the provider", () => {
    always((life) => {
      for (const work of effectsOf(life)) expect(executedOf(life, work)).toBeLessThanOrEqual(1);
      expect(life.provider.timesPaid).toBeLessThanOrEqual(1);
      expect(life.provider.refundable).toBeGreaterThanOrEqual(0);
    });
  });

  it("the payment says in the end what the provider's object says, to the last unit", () => {
    always(({ provider, payment }) => {
      if (provider.status === "succeeded") expect(payment.status).toBe("succeeded");
      else expect(["failed", "canceled"]).toContain(payment.status);
      const succeeded = [...provider.refunds.values()].filter(({ status }) => status === "succeeded");
      expect(payment).toMatchObject({
        amountCaptured: provider.captured,
        amountCapturable: 0,
        amountRefunded: succeeded.reduce((sum, { amount }) => sum + amount, 0),
        openEffect: null,
        nextAction: null,
        authorizedUntil: null,
      });
    });
  });

  it("each refund says what the provider's says, and one that is not there has failed", () => {
    always((life) => {
      for (const work of effectsOf(life)) {
        if (work.refund === null || isStuck(work)) continue;
        const made = life.provider.refunds.get(work.attempt.id);
        expect(work.refund.status).toBe(made?.status ?? "failed");
      }
    });
  });

  it("what a key was answered is true for ever", () => {
    always((life) => {
      for (const work of effectsOf(life)) {
        if (isStuck(work)) continue;
        const { attempt, answer } = work;
        const made = life.provider.refunds.get(attempt.id);
        if (answer === null || answer === undefined)
          throw new Error(`${attempt.id} has ended without an answer`);
        if (attempt.kind === "refund") {
          // The bank can send the money of a refund that was done back later, and only that way round.
          if (answer.type === "done") expect(made).toBeDefined();
          else expect(made?.status ?? "failed").toBe("failed");
          continue;
        }
        if (answer.type !== "done") expect(executedOf(life, work)).toBe(0);
        else if (attempt.kind === "cancel") expect(life.provider.status).toBe("canceled");
        else expect([life.provider.status, life.provider.captured]).toEqual(["succeeded", attempt.amount]);
      }
    });
  });

  it("none is sent again before a question, unless the first was refused", () => {
    always((life) => {
      for (const { attempt } of effectsOf(life)) expect(blindSends(life.log, attempt.id)).toEqual([]);
    });
  });

  it("a refund has one key, and is never sent once that may be forgotten", () => {
    always((life) => {
      for (const { attempt } of effectsOf(life).filter(({ refund }) => refund !== null)) {
        const sends = life.log.filter((entry) => entry.type === "send" && entry.attemptId === attempt.id);
        const keys = sends.map((entry) => (entry.type === "send" ? entry.key : ""));
        expect(new Set(keys).size).toBeLessThanOrEqual(1);
        const times = sends.map((entry) => (entry.type === "send" ? entry.atMs : 0));
        expect(Math.max(0, ...times) - Math.min(...times, Number.MAX_SAFE_INTEGER)).toBeLessThan(
          KEY_LIFETIME_MS,
        );
      }
    });
  });

  it("a capture or cancel gets another key only after the last has said all that it will ever say", () => {
    always((life) => {
      for (const { change, before, after } of writesOf(life)) {
        if (before.attempt.kind === "charge") continue;
        const again = after.attempt.fenceRound !== before.attempt.fenceRound;
        if (again) expect([before.attempt.keySpent, change.then.type]).toEqual([true, "send"]);
      }
    });
  });

  it("a payment that succeeded stays so, and never less was captured than is given back", () => {
    always((life) => {
      for (const { before, after } of writesOf(life)) {
        if (before.payment.status === "succeeded") expect(after.payment.status).toBe("succeeded");
        const { amountRefunded, refundReserved, amountCaptured } = after.payment;
        expect(amountRefunded).toBeLessThanOrEqual(refundReserved);
        expect(refundReserved).toBeLessThanOrEqual(amountCaptured);
      }
    });
  });

  it("one capture or cancel is in flight at a time, and is in flight until it has ended", () => {
    always((life) => {
      for (const { before, after } of writesOf(life)) {
        const { kind, id, state } = after.attempt;
        if (kind !== "capture" && kind !== "cancel") {
          expect(after.payment.openEffect).toBe(before.payment.openEffect);
        } else if (before.attempt.state !== "completed") {
          expect(before.payment.openEffect).toBe(id);
          expect(after.payment.openEffect).toBe(state === "completed" ? null : id);
        }
      }
    });
  });

  it("the ledger's balances are the payment's amounts", () => {
    always(({ entries, payment }) => {
      const balances = balancesOf([...entries.values()], payment.currency);
      expect(balances.authorized ?? 0).toBe(payment.amountCapturable);
      expect(0 - (balances.sales ?? 0)).toBe(payment.amountCaptured);
      expect(balances.refunds ?? 0).toBe(payment.amountRefunded);
      expect(balances.provider_balance ?? 0).toBe(payment.amountCaptured - payment.amountRefunded);
    });
  });

  it("every wait is between 1 ms and 5 minutes, or 6 hours while an authorisation stands", () => {
    always((life) => {
      for (const { change, after } of writesOf(life)) {
        if (change.then.type !== "wait") continue;
        const { kind, waits } = after.attempt;
        const stands = kind === "charge" && after.payment.status === "authorized" && waits === 0;
        expect(change.then.ms).toBeGreaterThanOrEqual(1);
        expect(change.then.ms).toBeLessThanOrEqual(stands ? HELD_LOOK_MS : LONGEST_WAIT_MS);
      }
    });
  });
});
