import { beforeEach, expect, test, vi } from "vitest";
import type * as AdmitEffect from "../../src/domain/admit-effect.js";
import type * as AttemptModule from "../../src/domain/attempt.js";
import type * as ChargeSteps from "../../src/domain/charge-steps.js";
import type * as EffectSteps from "../../src/domain/effect-steps.js";
import type * as MoneyFacts from "../../src/domain/money-facts.js";
import type * as Advance from "../../src/store/advance.js";
import { BROKEN_TIMEOUT_MS, NOT_SEEN, useFirstFault } from "./first-fault.js";

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

const firstFault = useFirstFault();

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
  BROKEN_TIMEOUT_MS,
);

test(
  "a confirm that is sent again without a question is seen",
  async () => {
    broken.rule = "confirm_question";
    expect(await firstFault(2, /:confirm .* without a question/)).toMatch(/\(confirm of pi_\d+\)/);
  },
  BROKEN_TIMEOUT_MS,
);

test(
  "refunds that are accepted without a reservation are seen",
  async () => {
    broken.rule = "reservation";
    expect(await firstFault(5, /gives? back/)).toMatch(/^pay#\d+ promises to give back more than it took/);
  },
  BROKEN_TIMEOUT_MS,
);

test(
  "a fee that is not posted is seen in the books",
  async () => {
    broken.rule = "fees";
    expect(await firstFault(1, /^the books of/)).toMatch(
      /the books of pay#\d+ say .*, the provider .*provider_fees/,
    );
  },
  BROKEN_TIMEOUT_MS,
);

test(
  "another provider key for each send is seen: refunds are made twice",
  async () => {
    broken.rule = "derived_keys";
    expect(await firstFault(11, /were made for/)).toMatch(/re_\d+ and re_\d+ were made for att#\d+/);
  },
  BROKEN_TIMEOUT_MS,
);

test(
  "a write that does not name its fence is seen",
  async () => {
    broken.rule = "fence";
    expect(await firstFault(8, /without a question/, { weather: { freezes: 0.03, deaths: 0 } })).not.toMatch(
      NOT_SEEN,
    );
  },
  BROKEN_TIMEOUT_MS,
);

test(
  "a provider that ignores keys is seen: refunds are made twice",
  async () => {
    expect(await firstFault(11, /were made for/, { flaws: { ignoresKeys: true } })).toMatch(
      /re_\d+ and re_\d+ were made for att#\d+/,
    );
  },
  BROKEN_TIMEOUT_MS,
);

test(
  "a provider that charges an object twice is seen",
  async () => {
    const flaws = { ignoresKeys: true, chargesTwice: true };
    expect(await firstFault(51, /was charged 2 times/, { flaws })).toMatch(/^pi_\d+ was charged 2 times/);
  },
  BROKEN_TIMEOUT_MS,
);
