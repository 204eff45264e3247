import { describe, expect, it } from "vitest";
import { BLOWS, drawBlows } from "../chaos/blows.js";
import { bookFaults } from "../chaos/check-books.js";
import { eventFaults } from "../chaos/check-events.js";
import { providerFaults } from "../chaos/check-provider.js";
import { wireFaults } from "../chaos/check-wire.js";
import { describeReport } from "../chaos/describe-report.js";
import { CHARGED, ONE_PAYMENT, requestsOf } from "../chaos/one-payment.js";
import type { ReceivedEvent } from "../chaos/receiver.js";
import { runChaos } from "../chaos/run.js";
import type { SendRow, Snapshot } from "../chaos/snapshot.js";
import { describeWithFaults } from "../support/e2e-target.js";

const SEED = 20_261_129;
/** Most of it is for a machine that is many times slower. */
const TEST_TIMEOUT_MS = 600_000;

describeWithFaults("real deaths", () => {
  it(
    "of every process, of PostgreSQL and of the provider, under load: nothing lost, nothing doubled",
    async () => {
      const said: string[] = [];
      const report = await runChaos({
        seed: SEED,
        callers: 8,
        between: 8,
        goesOn: (blows) => blows < BLOWS.length,
        say: (line) => said.push(line),
        keepLogs: false,
      });
      const story = `${said.join("\n")}\n${describeReport(report)}`;
      expect(report.faults, story).toEqual([]);
      expect(Object.keys(report.blows).toSorted(), story).toEqual([...BLOWS].toSorted());
      // Nothing is shown by payments that were never made.
      expect(report.payments["succeeded"], story).toBeGreaterThan(BLOWS.length);
      expect(report.effects["refunds succeeded"], story).toBeGreaterThan(0);
    },
    TEST_TIMEOUT_MS,
  );
});

describe("the comparison at the end of such a run", () => {
  const arrived = (ids: readonly string[]) =>
    new Map(
      ids.map((id, place): [string, ReceivedEvent] => {
        const row = ONE_PAYMENT.outbox.find((one) => one.id === id);
        const body = JSON.stringify({ data: { object: row?.data } });
        return [id, { id, type: row?.type ?? "", body, place, times: 1, taken: 1 }];
      }),
    );
  const faultsOf = (changes: Partial<Snapshot>, received = arrived(["evt_1", "evt_2"])) => {
    const seen = { ...ONE_PAYMENT, ...changes };
    return [
      ...providerFaults(seen),
      ...bookFaults(seen),
      ...eventFaults(seen, { events: received, faults: [] }),
      ...wireFaults(seen, []),
    ].join("\n");
  };
  const second = { ...CHARGED, payment_intent: { ...CHARGED.payment_intent, id: "pi_2" } };
  const [transfer, ...transfers] = ONE_PAYMENT.balances;
  const attempt = `att_${"0".repeat(32)}`;
  const at = (second: number) => new Date(Date.UTC(2026, 2, 4, 5, 6, 0, second * 1_000));
  const sent = (from: number, to: number, outcome: string): SendRow => ({
    attempt_id: attempt,
    provider_key: `payment-attempt:${attempt}`,
    outcome,
    sent_at: at(from),
    at: at(to),
  });
  const blind = requestsOf(attempt, ["send", "send"], [at(7), at(9)]);

  it("finds nothing where nothing is wrong", () => {
    expect(faultsOf({})).toBe("");
  });

  it.each<[string, Partial<Snapshot>, string]>([
    ["a second charge", { objects: [CHARGED, second] }, "key payments.create k1 was charged 2 times"],
    ["a payment that is lost here", { attempts: [] }, "pi_1 (succeeded) is of an attempt that is not here"],
    ["an object that is lost there", { objects: [] }, "pay_1 has pi_1, which the provider has not"],
    ["a refund that is lost here", { refunds: [] }, "here is no refund re_p of att_1: 400 succeeded"],
    [
      "a second refund",
      { objects: [{ ...CHARGED, refunds: [...CHARGED.refunds, ...CHARGED.refunds] }] },
      "attempt att_2 was refunded twice",
    ],
    ["a transfer that is not in the books", { balances: transfers }, "the books of pay_1 say"],
    [
      "one that is in them twice",
      { balances: [{ ...transfer!, balance: "1" }, ...transfers] },
      "the books of pay_1 say provider_balance 1",
    ],
    ["a fact without its event", { outbox: ONE_PAYMENT.outbox.slice(0, 1) }, "its events say created"],
    ["a send without a question", { logs: [blind] }, "request 2 follows 1 without a question"],
    [
      "one although an earlier send was given up, and had come in time",
      { logs: [blind], sends: [sent(6.9, 8, "unknown: timeout")] },
      "request 2 follows 1 without a question",
    ],
  ])("tells of %s", (_name, changes, told) => {
    expect(faultsOf(changes)).toContain(told);
  });

  it("excuses a send that lay in a socket until it had been given up and asked about, and came beside the next", () => {
    const arrivals = ["send", "question", "send", "send"] as const;
    const log = requestsOf(attempt, arrivals, [at(7), at(8), at(9), at(9.1)]);
    const answered = [sent(6.9, 7.2, "unknown: server_error"), sent(9, 9.2, "unknown: stored_error")];
    const givenUp = sent(5, 6, "unknown: timeout");
    expect(faultsOf({ logs: [log], sends: [givenUp, ...answered] })).toBe("");
    expect(faultsOf({ logs: [log], sends: answered })).toContain("request 4 follows 3 without a question");
  });

  it("tells of an event that did not come, and of events that came in another order", () => {
    expect(faultsOf({}, arrived(["evt_1"]))).toContain("evt_2 payment.succeeded of pay_1 was never received");
    expect(faultsOf({}, arrived(["evt_2", "evt_1"]))).toContain("the events of pay_1 came in another order");
  });

  it("says how many of all kinds of blows there were, so that a short run does not read like a long one", () => {
    const report = describeReport({
      seed: 1,
      minutes: 0.1,
      payments: {},
      effects: {},
      events: 0,
      answers: 0,
      refusals: {},
      broken: 0,
      blows: { kill_api: 2 },
      longestRecovery: { after: null, ms: 0 },
      settledMs: 0,
      longestPaymentMs: 0,
      reviews: [],
      errorsLogged: {},
      faults: [],
      logFolder: "",
    });
    expect(report).toContain(`blows: 2, of 1 of ${BLOWS.length} kinds: kill_api 2`);
  });

  it("follows blows that one seed repeats, each kind once before any comes again", () => {
    const drawn = (seed: number) => {
      const blows = drawBlows(seed);
      return Array.from({ length: 2 * BLOWS.length }, () => blows.next().value);
    };
    expect(drawn(SEED)).toEqual(drawn(SEED));
    expect(drawn(SEED)).not.toEqual(drawn(SEED + 1));
    const names = drawn(SEED).map(({ name }) => name);
    expect(names.slice(0, BLOWS.length).toSorted()).toEqual([...BLOWS].toSorted());
  });
});
