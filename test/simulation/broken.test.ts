import { beforeEach, expect, test, vi } from "vitest";
import type * as AdmitEffect from "../../src/domain/admit-effect.js";
import type * as AttemptModule from "../../src/domain/attempt.js";
import type * as ChargeSteps from "../../src/domain/charge-steps.js";
import type * as EffectSteps from "../../src/domain/effect-steps.js";
import type * as MoneyFacts from "../../src/domain/money-facts.js";
import type * as Advance from "../../src/store/advance.js";
import { runSeed, type SeedOptions } from "./run-seed.js";
import { useSimulatedDatabase } from "./seed-suite.js";

/** Which rule is taken out of the product in this test. */
const broken = vi.hoisted(() => ({ rule: "none" }));

vi.mock("../../src/domain/effect-steps.js", async (original) => {
  const real = await original<typeof EffectSteps>();
  const { sendAgain } = await import("../../src/domain/effect-decisions.js");
  const firstEffectStep: typeof real.firstEffectStep = (view, account, markedNow) =>
    broken.rule === "effect_question" && view.attempt.state === "send_unknown"
      ? sendAgain(view, { kind: "send", call: "refund", outcome: "unasked", evidence: null })
      : real.firstEffectStep(view, account, markedNow);
  return { ...real, firstEffectStep };
});

vi.mock("../../src/domain/charge-steps.js", async (original) => {
  const real = await original<typeof ChargeSteps>();
  const { confirmOrFence } = await import("../../src/domain/charge-decisions.js");
  const firstStep: typeof real.firstStep = (view, account, markedNow) =>
    broken.rule === "confirm_question" && view.attempt.state === "confirm_unknown"
      ? confirmOrFence(view, [], null)
      : real.firstStep(view, account, markedNow);
  return { ...real, firstStep };
});

vi.mock("../../src/domain/admit-effect.js", async (original) => {
  const real = await original<typeof AdmitEffect>();
  const admit: typeof real.admit = (payment, request) =>
    broken.rule === "reservation" && request.kind === "refund" && payment.status === "succeeded"
      ? { type: "admitted", amount: request.amount ?? payment.amountCaptured }
      : real.admit(payment, request);
  return { ...real, admit };
});

vi.mock("../../src/domain/money-facts.js", async (original) => {
  const real = await original<typeof MoneyFacts>();
  const moneyFactsOf: typeof real.moneyFactsOf = (view, change, applied) =>
    real.moneyFactsOf(view, change, applied).filter((fact) => broken.rule !== "fees" || fact.type !== "fee");
  return { ...real, moneyFactsOf };
});

vi.mock("../../src/domain/attempt.js", async (original) => {
  const real = await original<typeof AttemptModule>();
  let sends = 0;
  const providerKey: typeof real.providerKey = (attempt, call) => {
    sends += 1;
    const key = real.providerKey(attempt, call);
    return broken.rule === "derived_keys" ? `${key}:${String(sends)}` : key;
  };
  return { ...real, providerKey };
});

vi.mock("../../src/store/advance.js", async (original) => {
  const real = await original<typeof Advance>();
  const advanceAttempts: typeof real.advanceAttempts = async (db, rows) => {
    if (broken.rule !== "fence") return real.advanceAttempts(db, rows);
    const unfenced = rows.map(async (row) => {
      const [now] = await db<{ fence: string; state: string }[]>`
        select fence, state from attempts where tenant_id = ${row.tenant_id} and id = ${row.attempt_id}`;
      return {
        ...row,
        fence: Number(now?.fence),
        from_state: now?.state ?? row.from_state,
      };
    });
    return real.advanceAttempts(db, await Promise.all(unfenced));
  };
  return { ...real, advanceAttempts };
});

const stage = useSimulatedDatabase();
const MOST_SEEDS = 40;
const TIMEOUT_MS = 180_000;

/** The first fault of such a kind, from a seed on that showed one when this was written. */
async function firstFault(
  from: number,
  sign: RegExp,
  worse: Pick<SeedOptions, "flaws" | "weather"> = {},
): Promise<string> {
  const others: string[] = [];
  for (let seed = from; seed < from + MOST_SEEDS; seed += 1) {
    const { faults } = await runSeed(seed, { database: stage.database, ...worse });
    const found = faults.find((fault) => sign.test(fault));
    if (found !== undefined) return found;
    others.push(...faults);
  }
  return `none of ${String(MOST_SEEDS)} seeds shows ${sign.source}; seen instead: ${others.join("; ").slice(0, 2_000)}`;
}

beforeEach(() => {
  broken.rule = "none";
});

test(
  "a capture, cancel or refund that is sent again without a question is seen",
  async () => {
    broken.rule = "effect_question";
    expect(await firstFault(2, /without a question/)).toMatch(
      /was sent by \w+ without a question after an earlier send/,
    );
  },
  TIMEOUT_MS,
);

test(
  "a confirm that is sent again without a question is seen",
  async () => {
    broken.rule = "confirm_question";
    expect(await firstFault(2, /:confirm .* without a question/)).toMatch(/\(confirm of pi_\d+\)/);
  },
  TIMEOUT_MS,
);

test(
  "refunds that are accepted without a reservation are seen",
  async () => {
    broken.rule = "reservation";
    expect(await firstFault(1, /gives? back/)).toMatch(/^pay#\d+ promises to give back more than it took/);
  },
  TIMEOUT_MS,
);

test(
  "a fee that is not posted is seen in the books",
  async () => {
    broken.rule = "fees";
    expect(await firstFault(1, /^the books of/)).toMatch(
      /the books of pay#\d+ say .*, the provider .*provider_fees/,
    );
  },
  TIMEOUT_MS,
);

test(
  "another provider key for each send is seen: refunds are made twice",
  async () => {
    broken.rule = "derived_keys";
    expect(await firstFault(11, /were made for/)).toMatch(/re_\d+ and re_\d+ were made for att#\d+/);
  },
  TIMEOUT_MS,
);

test(
  "a write that does not name its fence is seen",
  async () => {
    broken.rule = "fence";
    expect(await firstFault(3, /without a question/, { weather: { freezes: 0.03, deaths: 0 } })).not.toMatch(
      /^none of/,
    );
  },
  TIMEOUT_MS,
);

test(
  "a provider that ignores keys is seen: refunds are made twice",
  async () => {
    expect(await firstFault(11, /were made for/, { flaws: { ignoresKeys: true } })).toMatch(
      /re_\d+ and re_\d+ were made for att#\d+/,
    );
  },
  TIMEOUT_MS,
);

test(
  "a provider that charges an object twice is seen",
  async () => {
    const flaws = { ignoresKeys: true, chargesTwice: true };
    expect(await firstFault(31, /was charged 2 times/, { flaws })).toMatch(/^pi_\d+ was charged 2 times/);
  },
  TIMEOUT_MS,
);
