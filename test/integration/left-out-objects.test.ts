import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { PageRequest, PaymentProvider } from "../../src/domain/provider.js";
import type { Deps } from "../../src/operations/deps.js";
import { Comparison } from "../../src/operations/reconcile.js";
import type { Run } from "../../src/store/reconciliation.js";
import { type Harness, startHarness } from "../support/harness.js";
import { withProvider } from "../support/provider-events.js";
import {
  COMPARING,
  findingWords,
  LAG_MS,
  type PaidObject,
  payMany,
  untilSettled,
} from "../support/reconciliation.js";

let harness: Harness;
let paid: PaidObject;
let refundId: string;
beforeAll(async () => {
  harness = await startHarness({ env: COMPARING, workers: ["attempts"] });
  const [first] = await payMany(harness, 1);
  if (first === undefined) throw new Error("nothing was paid");
  paid = first;
  refundId = (await harness.sandbox.control.dashboard.refund(paid.objectId, 100)).id;
  await untilSettled(harness);
  await compared({});
});
afterAll(() => harness.stop());

/** A comparison to its end, of a provider that answers so, by somebody who waits for nothing. */
async function compared(answers: Partial<PaymentProvider>): Promise<Run> {
  const clock = { ...harness.deps.clock, sleep: () => Promise.resolve() };
  const deps: Deps = withProvider({ ...harness.deps, clock }, answers);
  const comparison = new Comparison(deps);
  const now = Date.now();
  return comparison.drive(
    await comparison.begin({ from: new Date(now - 3_600_000), to: new Date(now - LAG_MS) }),
  );
}

const notCompared = (id: string) =>
  `not compared, since there was no answer about it that can be read: ${id}`;
const unanswered = (reason: "server_error" | "rate_limited") =>
  Promise.resolve({
    type: "unanswered" as const,
    reason,
    retryAfterMs: null,
    evidence: { httpStatus: 500, code: null, requestId: null },
  });

describe("an object that cannot be read is told of in the report, whatever list it is on", () => {
  test.each([
    "listCharges",
    "listRefunds",
    "listDisputes",
    "listTransactions",
    "listUndeliveredEvents",
  ] as const)("%s", async (list) => {
    const listed = async (page: PageRequest) => {
      const answer = await harness.deps.provider[list](page);
      return { ...answer, unreadable: ["obj_1"] };
    };
    expect(await compared({ [list]: listed })).toMatchObject({
      state: "completed",
      error: notCompared("obj_1"),
    });
  });
});

/** The lists show nothing, so that each object is asked about. */
const hidden = (list: "listCharges" | "listRefunds") => ({
  [list]: async (page: PageRequest) => ({ ...(await harness.deps.provider[list](page)), items: [] }),
});

describe("an object about which there is no answer", () => {
  test("is left out where our row names it, and the comparison goes on behind it", async () => {
    const getCharge = () => unanswered("server_error");
    const run = await compared({ ...hidden("listCharges"), getCharge });
    expect(run).toMatchObject({ state: "completed", error: notCompared(paid.objectId) });
  });

  test("is left out where a movement of the balance names it", async () => {
    await harness.deps.db.sql`delete from refunds`;
    const getRefund = () => unanswered("server_error");
    const run = await compared({ ...hidden("listRefunds"), getRefund });
    expect(run).toMatchObject({ state: "completed", error: notCompared(refundId) });
  });

  test("is asked about three times before that", async () => {
    let asked = 0;
    const getCharge: PaymentProvider["getCharge"] = () => {
      asked += 1;
      if (asked < 3) return unanswered("server_error");
      return Promise.resolve({
        type: "missing",
        evidence: { httpStatus: 404, code: null, requestId: null },
      });
    };
    const run = await compared({ ...hidden("listCharges"), getCharge });
    expect(run).toMatchObject({ state: "completed", error: null });
    expect(await findingWords(harness)).toContain(`missing_there ${paid.objectId} open`);
  });

  test("is never left out where the provider only says that it is busy: the run fails, and says so", async () => {
    const getCharge = () => unanswered("rate_limited");
    const run = await compared({ ...hidden("listCharges"), getCharge });
    expect(run).toMatchObject({
      state: "failed",
      error: "charges: the provider did not answer (rate_limited)",
    });
  });
});
