import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CALM, Driver, type Entry, type Weather } from "./charge-driver.js";
import { BUDGET_MS, HELD_LOOK_MS, KEY_LIFETIME_MS, LONGEST_WAIT_MS } from "./charge-fixtures.js";
import { OUTSIDE, SEND_FAULTS, VERDICTS } from "./model-provider.js";

const RUNS = 1_500;
/** Claims in calm weather within which every attempt must have ended. */
const MOST_CALM_CLAIMS = 40;

const weather: fc.Arbitrary<Weather> = fc.record({
  send: fc.oneof({ weight: 2, arbitrary: fc.constant("none" as const) }, fc.constantFrom(...SEND_FAULTS)),
  verdict: fc.constantFrom(...VERDICTS),
  answers: fc.oneof({ weight: 3, arbitrary: fc.constant(true) }, fc.boolean()),
  outside: fc.oneof({ weight: 4, arbitrary: fc.constant("nothing" as const) }, fc.constantFrom(...OUTSIDE)),
  dies: fc.oneof({ weight: 6, arbitrary: fc.constant(false) }, fc.boolean()),
  arrives: fc.boolean(),
  tookMs: fc.constantFrom(5, 200, 20_000),
});

interface Claim {
  readonly weathers: Weather[];
  readonly accountKnown: boolean;
  readonly pauseMs: number;
}

const claim: fc.Arbitrary<Claim> = fc.record({
  weathers: fc.array(weather, { minLength: 1, maxLength: 6 }),
  accountKnown: fc.oneof({ weight: 6, arbitrary: fc.constant(true) }, fc.boolean()),
  pauseMs: fc.oneof(
    { weight: 5, arbitrary: fc.constant(0) },
    fc.constantFrom(1_000, BUDGET_MS, KEY_LIFETIME_MS, KEY_LIFETIME_MS + 4_000_000),
  ),
});

/** A charge in bad weather, and then in calm weather until it has ended. */
function drive(claims: readonly Claim[], manual: boolean): Driver {
  const driver = new Driver();
  driver.provider.isManual = manual;
  const captureMethod = manual ? "manual" : "automatic";
  driver.view = { ...driver.view, payment: { ...driver.view.payment, captureMethod } };
  for (const { weathers, accountKnown, pauseMs } of claims) {
    if (driver.ended) break;
    driver.claim(weathers, accountKnown);
    driver.pass(pauseMs);
  }
  for (let calm = 0; calm < MOST_CALM_CLAIMS && !driver.ended; calm += 1) {
    driver.provider.arrive();
    // The bank decides in the end, and a customer who does not act lets the object lapse.
    driver.provider.outside(driver.provider.status === "pending" ? "pays" : "nothing");
    if (driver.provider.status === "requires_action") driver.provider.outside("cancels");
    if (driver.provider.status === "authorized") driver.provider.outside("lapses");
    driver.claim([CALM], true);
  }
  return driver;
}

function always(check: (driver: Driver) => void): void {
  fc.assert(
    fc.property(fc.array(claim, { maxLength: 8 }), fc.boolean(), (claims, manual) => {
      check(drive(claims, manual));
    }),
    { numRuns: RUNS },
  );
}

const writesOf = (driver: Driver) => driver.log.filter((entry) => entry.type === "write");
const sendsOf = (driver: Driver) => driver.log.filter((entry) => entry.type === "send");

/** The sends of a call with no answered question since the last one, although not all before were refused. */
function blindSends(log: readonly Entry[], call: string): Entry[] {
  let allRefused = true;
  let asked = true;
  return log.filter((entry) => {
    if (entry.type === "question" && entry.answered) asked = true;
    if (entry.type !== "send" || entry.call !== call) return false;
    const blind = !allRefused && !asked;
    allRefused = allRefused && entry.outcome === "not_performed";
    asked = false;
    return blind;
  });
}

// Each property drives the same decisions through the same kinds of trouble; an IllegalTransition fails every one.
describe("whatever happens to the calls, the answers and the workers of a charge", () => {
  it("it ends once the provider answers again, and its order id is held only by a payment that charged", () => {
    always((driver) => {
      const { attempt, payment } = driver.view;
      expect(attempt.state).toBe("completed");
      expect(payment.holdsOrderId).toBe(payment.status === "succeeded" || payment.status === "authorized");
    });
  });

  it("the customer is charged at most once, and the payment says what the provider's object says", () => {
    always(({ provider, view: { payment, attempt } }) => {
      expect(provider.timesPaid).toBeLessThanOrEqual(1);
      if (provider.status === "succeeded" || provider.status === "authorized") {
        expect(payment.status).toBe(provider.status);
      } else if (provider.status === "canceled") {
        expect(["failed", "canceled"]).toContain(payment.status);
      } else {
        // At most a create that landed after the end: unconfirmed, and nobody has its id.
        expect([null, "created"]).toContain(provider.status);
        expect(attempt.providerPaymentId).toBeNull();
        expect(payment).toMatchObject({ status: "failed", failure: { retry: "same_key" } });
      }
    });
  });

  it.each(["create", "confirm", "fence"])(
    "no %s is sent again before a question, unless the first was refused",
    (call) => {
      always(({ log }) => {
        expect(blindSends(log, call)).toEqual([]);
      });
    },
  );

  it("every send of a create and of a confirm carries one key, and no confirm goes out past the budget", () => {
    always((driver) => {
      const keysOf = (call: string) =>
        new Set(sendsOf(driver).flatMap((one) => (one.call === call ? [one.key] : [])));
      expect(keysOf("create").size).toBeLessThanOrEqual(1);
      expect(keysOf("confirm").size).toBeLessThanOrEqual(1);
      // The time that the write before it took is not the send's: the driver's writes take none.
      expect(sendsOf(driver).filter(({ call, late }) => call === "confirm" && late)).toEqual([]);
    });
  });

  it("nothing is sent or asked after the end, and the end is the last write", () => {
    always(({ log }) => {
      const end = log.findIndex(
        (entry) => entry.type === "write" && entry.after.attempt.state === "completed",
      );
      expect(log.slice(end + 1)).toEqual([]);
    });
  });

  it("the order id is free only when the payment has failed or is canceled and its object can no longer charge", () => {
    always((driver) => {
      for (const { change, after } of writesOf(driver)) {
        if (after.payment.holdsOrderId) continue;
        expect(["failed", "canceled"]).toContain(after.payment.status);
        expect(after.attempt.state).toBe("completed");
        const closed =
          change.note?.outcome === "found: canceled" || change.note?.outcome === "object: canceled";
        expect(closed || after.attempt.providerPaymentId === null).toBe(true);
      }
    });
  });

  it("the payment's version grows by one with each of its writes, and with nothing else", () => {
    always((driver) => {
      for (const { before, after } of writesOf(driver)) {
        const { version, updatedAt: _, providerPaymentId: _id, ...rest } = before.payment;
        const { version: next, updatedAt: __, providerPaymentId: __id, ...nextRest } = after.payment;
        const moved = JSON.stringify(rest) !== JSON.stringify(nextRest);
        if (moved) expect(next).toBe(version + 1);
        if (next !== version) expect(next).toBe(version + 1);
      }
    });
  });

  it("a payment whose money has moved never goes back, and a committed object id never changes", () => {
    always((driver) => {
      for (const { before, after } of writesOf(driver)) {
        expect(before.payment.status).not.toBe("succeeded");
        if (before.payment.status === "authorized") {
          expect(["authorized", "succeeded", "canceled"]).toContain(after.payment.status);
          if (after.payment.status === "authorized") expect(after.payment).toEqual(before.payment);
        }
        if (before.attempt.providerPaymentId !== null) {
          expect(after.attempt.providerPaymentId).toBe(before.attempt.providerPaymentId);
        }
      }
    });
  });

  it("every wait is between 1 ms and 5 minutes, or 6 hours while an authorisation stands, and no claim runs out of steps", () => {
    always((driver) => {
      for (const { change, after } of writesOf(driver)) {
        if (change.then.type !== "wait") continue;
        const stands = after.payment.status === "authorized" && after.attempt.waits === 0;
        expect(change.then.ms).toBeGreaterThanOrEqual(1);
        expect(change.then.ms).toBeLessThanOrEqual(stands ? HELD_LOOK_MS : LONGEST_WAIT_MS);
      }
      expect(driver.longestClaim).toBeLessThan(12);
    });
  });
});
