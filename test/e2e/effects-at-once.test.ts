import { beforeAll, describe, expect, it } from "vitest";
import type { ApiAnswer } from "../support/api-client.js";
import { unaskedSends } from "../support/books.js";
import { describeWithFaults } from "../support/e2e-target.js";
import { useInbox } from "../support/inbox.js";
import {
  AUTOMATIC,
  cancel,
  capture,
  MANUAL,
  made,
  objectIdOf,
  outcomeOf,
  refund,
} from "../support/merchant.js";
import { type Pair, usePair } from "../support/pair.js";
import { deliver, EVENTFUL } from "../support/stripe-sender.js";
import type { Api } from "../support/system.js";

/** Of everything at once; each has two payments, met in opposite order by two processes. */
const ROUNDS = 20;
const PAIRS_OF_CALLS = 10;
const SIDE_BY_SIDE = 5;
/** So long that a busy machine alone makes no call time out and no worker lose an attempt: nothing is sent twice then. */
const UNHURRIED = { PROVIDER_TIMEOUT_MS: "10000", ATTEMPT_LEASE_MS: "20000" } as const;
const PATIENT = { prefer: "wait=30" } as const;

/** What two callers do at the same time to a payment of 10000 that is held. */
interface Meeting {
  one(pair: Pair, id: string, objectId: string): Promise<ApiAnswer>;
  other(pair: Pair, id: string, objectId: string): Promise<unknown>;
  /** Every outcome that may come of it: the first caller's, the second's, the captured amount. */
  readonly outcomes: readonly string[];
}

const REFUSED = ["409 invalid_state", "409 operation_in_progress"];
const captureAtOne = ({ apis }: Pair, id: string) => capture(apis[0].client, id, { amount: 6_000 }, PATIENT);
const cancelAtOne = ({ apis }: Pair, id: string) => cancel(apis[0].client, id, undefined, PATIENT);
const cancelAtOther = ({ apis }: Pair, id: string) => cancel(apis[1].client, id, undefined, PATIENT);
/** The dashboard's hand, which is refused where it comes too late. */
const captureOutside = ({ control }: Pair, _id: string, objectId: string) =>
  control.dashboard.capture(objectId, 4_000).catch((error: unknown) => {
    if (!String(error).includes("could not be captured")) throw error;
  });

const MEETINGS: Readonly<Record<string, Meeting>> = {
  "two captures of different amounts": {
    one: captureAtOne,
    other: ({ apis }, id) => capture(apis[1].client, id, { amount: 4_000 }, PATIENT),
    outcomes: REFUSED.flatMap((refused) => [`200, ${refused}, 6000`, `${refused}, 200, 4000`]),
  },
  "a capture and a cancel": {
    one: captureAtOne,
    other: cancelAtOther,
    outcomes: REFUSED.flatMap((refused) => [`200, ${refused}, 6000`, `${refused}, 200, 0`]),
  },
  "two cancels": {
    one: cancelAtOne,
    other: cancelAtOther,
    outcomes: REFUSED.flatMap((refused) => [`200, ${refused}, 0`, `${refused}, 200, 0`]),
  },
  "a capture and one at the dashboard": {
    one: captureAtOne,
    other: captureOutside,
    outcomes: ["200, outside, 6000", "409 invalid_state, outside, 4000"],
  },
  "a cancel and a capture at the dashboard": {
    one: cancelAtOne,
    other: captureOutside,
    outcomes: ["200, outside, 0", "409 invalid_state, outside, 4000"],
  },
};

describeWithFaults("what comes together, at two APIs and two workers", () => {
  const pair = usePair({ ...EVENTFUL, ...UNHURRIED });
  const inbox = useInbox(pair);
  beforeAll(async () => {
    await pair.inbox(0);
    await pair.inbox(1);
  });

  const isAnswer = (value: unknown): value is ApiAnswer =>
    typeof value === "object" && value !== null && "headers" in value;

  async function meet(meeting: Meeting): Promise<string> {
    const payment = await made(pair.client, MANUAL);
    const objectId = objectIdOf(payment);
    const [one, other] = await Promise.all([
      meeting.one(pair, payment.id, objectId),
      meeting.other(pair, payment.id, objectId),
    ]);
    await pair.expectOneTruth(payment.id);
    const { amount_captured: captured } = await pair.client.payment(payment.id);
    expect((await pair.sentFor(objectId)).filter((sent) => sent.call === "refunds.create")).toEqual([]);
    return `${outcomeOf(one)}, ${isAnswer(other) ? outcomeOf(other) : "outside"}, ${captured}`;
  }

  it.each(Object.entries(MEETINGS))(
    `%s, ${PAIRS_OF_CALLS} rounds: one truth, and it is the provider's`,
    async (_name, meeting) => {
      for (let round = 0; round < PAIRS_OF_CALLS; round += SIDE_BY_SIDE) {
        const outcomes = await Promise.all(Array.from({ length: SIDE_BY_SIDE }, () => meet(meeting)));
        for (const outcome of outcomes) expect(meeting.outcomes).toContain(outcome);
      }
    },
  );

  describe(`the provider's event, a capture, a refund and a read of one payment, ${ROUNDS} rounds of two payments`, () => {
    /** Everything about one payment at one process. */
    async function storm(api: Api, id: string, told: string): Promise<void> {
      const [event, taken, refunded, read] = await Promise.all([
        deliver(api.url, told),
        capture(api.client, id, undefined, PATIENT),
        refund(api.client, id, { amount: 1_000 }, PATIENT),
        api.client.get(`/v1/payments/${id}`),
      ]);
      expect([event.status, read.status]).toEqual([200, 200]);
      expect(["200", ...REFUSED]).toContain(outcomeOf(taken));
      expect(["201", "409 invalid_state"]).toContain(outcomeOf(refunded));
    }

    it("end in one truth, with no error and no deadlock, whichever of the two comes first where", async () => {
      const ids: string[] = [];
      for (let round = 0; round < ROUNDS; round += SIDE_BY_SIDE) {
        await Promise.all(
          Array.from({ length: SIDE_BY_SIDE }, async () => {
            const both = [await made(pair.client, MANUAL), await made(pair.client, AUTOMATIC)];
            const told = await Promise.all(
              both.map(async (payment) => (await inbox.eventOf(payment, "payment_intent.created")).with({})),
            );
            const storms = both.map(
              ({ id }, at) =>
                (api: Api) =>
                  storm(api, id, told[at] ?? ""),
            );
            await Promise.all([
              ...storms.map((start) => start(pair.apis[0])),
              ...storms.toReversed().map((start) => start(pair.apis[1])),
            ]);
            ids.push(...both.map(({ id }) => id));
          }),
        );
      }
      await inbox.untilNothingWaits();
      await pair.expectOneTruth(...ids);
      for (const id of ids) expect((await pair.client.payment(id)).status).toBe("succeeded");
      const [found] = await inbox.sql<{ deadlocks: number }[]>`
        select deadlocks::int from pg_stat_database where datname = current_database()`;
      expect(found?.deadlocks).toBe(0);
    });
  });

  it("asks before it sends again, in all of this", async () => {
    expect(unaskedSends(await pair.control.listRequests())).toEqual([]);
  });
});
