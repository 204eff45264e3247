import { describe, expect, it } from "vitest";
import { getPayment } from "../../src/operations/read-payments.js";
import { authorized, cancel, capture, paid, refund, refusalOf } from "../support/effects.js";
import type { Harness } from "../support/harness.js";
import { CROWDED, useStage } from "../support/stage.js";

const stage = useStage();
const ROUNDS = 50;
/** Payments that race at the same time, so that rounds are many and the machine is busy. */
const SIDE_BY_SIDE = 5;
const ROUNDS_MS = 120_000;

/** Rounds of a race between two processes; what each round came to, sorted. After it, the stage checks every payment. */
async function rounds(
  harness: Harness,
  round: (one: Harness["deps"], other: Harness["deps"], at: number) => Promise<readonly string[]>,
): Promise<string[]> {
  const other = await harness.another();
  const outcomes: string[] = [];
  for (let from = 0; from < ROUNDS; from += SIDE_BY_SIDE) {
    const together = Array.from({ length: SIDE_BY_SIDE }, (_, at) =>
      round(harness.deps, other.deps, from + at),
    );
    for (const outcome of await Promise.all(together)) outcomes.push(outcome.toSorted().join(" + "));
  }
  return [...new Set(outcomes)].toSorted();
}

/** The provider takes a little while, a different while each time. */
async function slowProvider(harness: Harness, call: string): Promise<void> {
  for (const [probability, ms] of [
    [0.3, 20],
    [0.5, 5],
  ] as const) {
    await harness.sandbox.control.addFault({
      match: { call },
      fault: { type: "slow" },
      latency_ms: ms,
      probability,
      times: null,
    });
  }
}

describe("two effects on one payment at the same time", { timeout: ROUNDS_MS }, () => {
  it("capture and capture: one takes the money, the other is told that it runs or has ended", async () => {
    const harness = await stage.start({ env: CROWDED });
    await slowProvider(harness, "payment_intents.capture");
    const seen = await rounds(harness, async (one, other) => {
      const id = await authorized(harness);
      const both = [
        refusalOf(capture(harness, id, 6_000, { deps: one })),
        refusalOf(capture(harness, id, 5_000, { deps: other })),
      ];
      return Promise.all(both);
    });
    expect(["200 + operation_in_progress", "200 + 409 invalid_state"]).toEqual(expect.arrayContaining(seen));
  });

  it("capture and cancel: the payment is captured or canceled, and never both", async () => {
    const harness = await stage.start({ env: CROWDED });
    await slowProvider(harness, "payment_intents.cancel");
    const seen = await rounds(harness, async (one, other, at) => {
      const id = await authorized(harness);
      const both = [
        refusalOf(capture(harness, id, undefined, { deps: at % 2 === 0 ? one : other })),
        refusalOf(cancel(harness, id, { deps: at % 2 === 0 ? other : one })),
      ];
      const outcome = await Promise.all(both);
      const { status } = await getPayment(harness.deps, harness.caller, id);
      return [...outcome, status];
    });
    for (const outcome of seen)
      expect(outcome).toMatch(/^200 \+ (409 invalid_state|canceled|operation_in_progress|succeeded)/);
    for (const outcome of seen) expect(outcome).toMatch(/canceled|succeeded/);
  });

  it("cancel and cancel: one cancel at the provider", async () => {
    const harness = await stage.start({ env: CROWDED });
    const seen = await rounds(harness, async (one, other) => {
      const id = await authorized(harness);
      return Promise.all([
        refusalOf(cancel(harness, id, { deps: one })),
        refusalOf(cancel(harness, id, { deps: other })),
      ]);
    });
    expect(["200 + operation_in_progress", "200 + 409 invalid_state"]).toEqual(expect.arrayContaining(seen));
    const log = await harness.sandbox.control.listRequests({ call: "payment_intents.cancel" });
    expect(log).toHaveLength(ROUNDS);
  });

  it("refund and refund of more than half: one is made, the other is too large", async () => {
    const harness = await stage.start({ env: CROWDED });
    await slowProvider(harness, "refunds.create");
    const seen = await rounds(harness, async (one, other) => {
      const id = await paid(harness);
      return Promise.all([
        refusalOf(refund(harness, id, 6_000, { deps: one })),
        refusalOf(refund(harness, id, 6_000, { deps: other })),
      ]);
    });
    expect(seen).toEqual(["201 + 422 amount_too_large"]);
    const log = await harness.sandbox.control.listRequests({ call: "refunds.create" });
    expect(log).toHaveLength(ROUNDS);
  });

  it("many small refunds that fit are all made, however often they meet in the payment's row", async () => {
    const harness = await stage.start({ env: CROWDED });
    const other = await harness.another();
    const id = await paid(harness);
    const outcomes = await Promise.all(
      Array.from({ length: 40 }, (_, at) =>
        refusalOf(refund(harness, id, 250, { deps: at % 2 === 0 ? harness.deps : other.deps })),
      ),
    );
    expect(new Set(outcomes)).toEqual(new Set(["201"]));
    expect(await getPayment(harness.deps, harness.caller, id)).toMatchObject({
      amountRefunded: 10_000,
      refundReserved: 10_000,
    });
  });
});
