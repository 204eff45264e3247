import { describe, expect, test } from "vitest";
import { ATTEMPT_STATES } from "../../src/domain/attempt.js";
import { PAYMENT_STATUSES } from "../../src/domain/payment.js";
import { exploreAll, reachedIn } from "./explored.js";
import { CHARGES, ONE_PAYMENT, STALE_WORKERS } from "./scenarios.js";

const TEST_MS = 600_000;
/** Of captures, cancels and refunds. */
const EFFECT_STATES = ["sending", "send_unknown"];

describe("every interleaving keeps every promise", () => {
  const reached = exploreAll(CHARGES, TEST_MS);

  test("and every state of a charge and of a payment is among them", () => {
    const charges = ATTEMPT_STATES.filter((state) => !EFFECT_STATES.includes(state));
    expect(charges.filter((state) => !reached.has(`charge ${state}`))).toEqual([]);
    // An authorisation is explored with its capture.
    const payments = PAYMENT_STATUSES.filter((status) => status !== "authorized");
    expect(payments.filter((status) => !reached.has(`payment ${status}`))).toEqual([]);
  });
});

describe("what the search leaves out changes nothing", () => {
  test("a worker whose fence has moved on, followed to its end", { timeout: TEST_MS }, async () => {
    const scenario = { ...STALE_WORKERS, faults: 1 };
    const followed = await reachedIn(scenario);
    expect(await reachedIn({ ...scenario, keepsStaleWorkers: false })).toEqual(followed);
  });

  test("the reason of a wait that no decision reads", { timeout: TEST_MS }, async () => {
    const scenario = { ...ONE_PAYMENT, faults: 1 };
    // With a person who decides nothing, all reasons are kept.
    expect(await reachedIn({ ...scenario, person: [] })).toEqual(await reachedIn(scenario));
  });
});
