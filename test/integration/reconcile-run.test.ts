import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Deps } from "../../src/operations/deps.js";
import { Comparison } from "../../src/operations/reconcile.js";
import { Gate } from "../support/gate.js";
import { type Harness, startHarness } from "../support/harness.js";
import { withProvider } from "../support/provider-events.js";
import {
  COMPARING,
  emptyRows,
  findingWords,
  inSmallPages,
  LAG_MS,
  payMany,
  runsOf,
  strayOf,
  untilSettled,
} from "../support/reconciliation.js";
import { until } from "../support/until.js";

/** A lease that a test can wait for. */
const SHORT_LEASE = { PROVIDER_TIMEOUT_MS: "400", ATTEMPT_LEASE_MS: "900" };

let harness: Harness;
let other: Deps;
const gates: Gate[] = [];
beforeAll(async () => {
  harness = await startHarness({ env: { ...COMPARING, ...SHORT_LEASE }, workers: ["attempts"] });
  other = (await harness.another({ env: { ...COMPARING, ...SHORT_LEASE }, workers: [] })).deps;
});
beforeEach(() => emptyRows(harness));
afterEach(() => {
  for (const gate of gates.splice(0)) gate.open();
});
afterAll(() => harness.stop());

function gateAt(point: string, skip: number): Gate {
  const gate = new Gate(point, skip);
  gates.push(gate);
  return gate;
}

/** Seven objects; on page 2 of four an orphan and a refund that was made outside. */
async function stageDifferences() {
  const early = await payMany(harness, 1);
  const orphan = await strayOf(harness, early[0]!);
  await payMany(harness, 5);
  const refund = await harness.sandbox.control.dashboard.refund(early[0]!.objectId, 100);
  await untilSettled(harness);
  return { orphan, refundId: refund.id };
}

function begin(deps: Deps): Promise<string> {
  const now = Date.now();
  return new Comparison(deps).begin({ from: new Date(now - 3_600_000), to: new Date(now - LAG_MS) });
}

async function effects() {
  const { control } = harness.sandbox;
  const { sql } = harness.deps.db;
  return {
    cancels: (await control.listRequests({ call: "payment_intents.cancel" })).length,
    keys: new Set(
      (await control.listRequests({ call: "payment_intents.cancel" })).map((one) => one.idempotency_key),
    ).size,
    refunds: (await sql`select id from refunds`).length,
    counted: (await sql<{ repaired: number }[]>`select repaired from reconciliation_runs`)[0]?.repaired,
  };
}

describe("a run whose process dies on page 2", () => {
  test.each([
    { point: "after_list_charges", skip: 1 },
    { point: "before_repair", skip: 0 },
    { point: "after_cancel_orphan", skip: 0 },
    { point: "after_repair", skip: 0 },
    { point: "before_page_committed", skip: 1 },
    { point: "after_page_committed", skip: 1 },
    { point: "before_fact_written", skip: 0 },
    { point: "after_repair", skip: 1 },
  ])(
    "$point (after $skip) is gone on with by another, and repairs nothing twice",
    async ({ point, skip }) => {
      const { orphan, refundId } = await stageDifferences();
      const gate = gateAt(point, skip);
      const dying = inSmallPages({ ...harness.deps, probe: gate.probe }, 4);
      const id = await begin(dying);
      const late = new Comparison(dying).drive(id);
      await gate.reached();
      const run = await new Comparison(inSmallPages(other, 4)).drive(id);
      expect(run).toMatchObject({ state: "completed", error: null });
      const expected = [`orphaned_object ${orphan} repaired`, `refund_outside ${refundId} repaired`];
      expect(await findingWords(harness)).toEqual(expected);
      const seen = await effects();
      expect(seen).toMatchObject({ keys: 1, refunds: 1, counted: 2 });
      gate.open();
      expect(await late).toMatchObject({ state: "completed", pages: run.pages, objects: run.objects });
      expect(await findingWords(harness)).toEqual(expected);
      expect(await effects()).toMatchObject({ keys: 1, refunds: 1, counted: 2 });
    },
  );
});

test("an owner that comes back late changes nothing of a run that is in another's hands", async () => {
  await stageDifferences();
  const gate = gateAt("before_page_committed", 1);
  const late = new Comparison(inSmallPages({ ...harness.deps, probe: gate.probe }, 4));
  const next = new Comparison(inSmallPages(other, 4));
  const id = await begin(harness.deps);
  expect(await late.step(id)).toBe("again");
  const stopped = late.step(id);
  await gate.reached();
  expect(await next.step(id)).toBe("idle");
  await until(
    "the end of its lease",
    () => next.step(id),
    (result) => result === "again",
  );
  const { sql } = harness.deps.db;
  const row = () => sql`select phase, cursor, pages, objects, repaired, lease_owner from reconciliation_runs`;
  const held = await row();
  expect(held).toMatchObject([{ phase: "refunds", lease_owner: other.workerName }]);
  gate.open();
  expect(await stopped).toBe("idle");
  expect(await row()).toEqual(held);
  expect(await next.drive(id)).toMatchObject({ state: "completed" });
});

test("a page is not read again once it is committed: the run goes on behind it", async () => {
  await stageDifferences();
  const gate = gateAt("after_page_committed", 0);
  const dying = inSmallPages({ ...harness.deps, probe: gate.probe }, 4);
  const id = await begin(dying);
  const late = new Comparison(dying).drive(id);
  await gate.reached();
  await harness.sandbox.control.clearRequests();
  const run = await new Comparison(inSmallPages(other, 4)).drive(id);
  expect(run.objects).toBe(7 + 1 + 7);
  expect(await harness.sandbox.control.listRequests({ call: "payment_intents.list" })).toHaveLength(1);
  gate.open();
  await late;
});

test("two workers share the runs: of one stretch of time there is one, and nobody waits for it", async () => {
  await stageDifferences();
  const workers = [harness.deps, other].map((deps) => new Comparison(deps));
  await Promise.all(workers.map((worker) => worker.round()));
  await until(
    "an end of the run",
    async () => {
      await Promise.all(workers.map((worker) => worker.round()));
      return runsOf(harness);
    },
    (runs) => runs.every(({ state }) => state === "completed"),
  );
  await Promise.all(workers.map((worker) => worker.round()));
  expect(await runsOf(harness)).toMatchObject([{ trigger: "worker", state: "completed" }]);
  expect(await effects()).toMatchObject({ cancels: 1, refunds: 1, counted: 2 });
});

test("the worker's next comparison begins where the last completed one ended, however long nobody compared", async () => {
  const { sql } = harness.deps.db;
  const worker = new Comparison(other);
  await worker.round();
  const weeks = "now() - interval '3 weeks'";
  await sql`update reconciliation_runs set id = 'rec_old', state = 'completed', window_to = ${sql.unsafe(weeks)}`;
  await worker.round();
  expect(
    await sql`select n.window_from = o.window_to as follows, n.window_to > now() - interval '1 minute' as ends
                from reconciliation_runs o, reconciliation_runs n where o.id = 'rec_old' and n.id <> o.id`,
  ).toEqual([{ follows: true, ends: true }]);
});

/** Waits for nothing, and tells how long it would have. */
function impatient(deps: Deps, waits: number[] = []): Deps {
  const sleep = (ms: number) => {
    waits.push(ms);
    return Promise.resolve();
  };
  return { ...deps, clock: { ...deps.clock, sleep } };
}

test("a run that the provider never answers has failed after so many tries, and the next one begins anew", async () => {
  await payMany(harness, 1);
  await untilSettled(harness);
  const silent = { call: "payment_intents.list" };
  await harness.sandbox.control.addFault({
    match: silent,
    times: null,
    fault: { type: "error", status: 500 },
  });
  const id = await begin(other);
  const waits: number[] = [];
  expect(await new Comparison(impatient(other, waits)).drive(id)).toMatchObject({
    state: "failed",
    error: "charges: the provider did not answer (server_error)",
  });
  expect(waits.slice(0, 6)).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 16_000]);
  await harness.sandbox.control.clearFaults();
  expect(await new Comparison(other).drive(await begin(other))).toMatchObject({ state: "completed" });
});

test.each([
  [new TypeError("an object that nobody thought of"), "TypeError: an object that nobody thought of"],
  [
    Object.assign(new Error("write EPIPE db.internal:5432"), { code: "EPIPE", address: "db.internal" }),
    "Error EPIPE",
  ],
])(
  "a run with a step that can never be made has failed too, so that it holds up no later one",
  async (fault, text) => {
    const listCharges = () => Promise.reject(fault);
    const id = await begin(other);
    expect(await new Comparison(impatient(withProvider(other, { listCharges }))).drive(id)).toMatchObject({
      state: "failed",
      error: `charges: failed here: ${text}`,
    });
  },
);

describe("a provider that is asked too much", () => {
  const REST_MS = 60_000;

  /** Answers once that there were too many questions, and counts those that it is asked. */
  function limited(deps: Deps) {
    let asked = 0;
    const listCharges: Deps["provider"]["listCharges"] = async (page) => {
      asked += 1;
      if (asked > 1) return deps.provider.listCharges(page);
      const evidence = { httpStatus: 429, code: "rate_limit", requestId: null };
      return { type: "unanswered", reason: "rate_limited", retryAfterMs: REST_MS, evidence };
    };
    return { deps: withProvider(deps, { listCharges }), asked: () => asked };
  }

  test("is left alone for as long as it says, by whoever takes the run over, and then the page is read", async () => {
    const { deps, asked } = limited(other);
    const id = await begin(deps);
    const comparison = new Comparison(deps);
    expect(await comparison.step(id)).toBe("wait");
    expect(await comparison.step(id)).toBe("wait");
    const { sql } = harness.deps.db;
    await sql`update reconciliation_runs set lease_expires_at = now()`;
    expect(await new Comparison(harness.deps).step(id)).toBe("wait");
    const [run] = await runsOf(harness);
    expect({ asked: asked(), error: run?.error }).toEqual({
      asked: 1,
      error: "charges: the provider did not answer (rate_limited)",
    });
    await sql`
      update reconciliation_runs set lease_expires_at = now(),
        cursor = jsonb_set(cursor::jsonb, '{notBefore}', to_jsonb(now()))::text`;
    expect(await comparison.step(id)).toBe("again");
    expect(await comparison.drive(id)).toMatchObject({ state: "completed", error: null });
  });

  test("is not asked about one finding after the other meanwhile", async () => {
    const { sql } = harness.deps.db;
    await sql`
      insert into reconciliation_findings (provider, kind, object_id, detail, first_run, last_run, last_seen_at)
      select 'stripe', 'missing_there', 'pi_' || n, 'made up', 'rec_0', 'rec_0', now() - interval '1 day'
        from generate_series(1, 5) n`;
    let asked = 0;
    const getCharge: Deps["provider"]["getCharge"] = () => {
      asked += 1;
      const evidence = { httpStatus: 429, code: "rate_limit", requestId: null };
      return Promise.resolve({ type: "unanswered", reason: "rate_limited", retryAfterMs: REST_MS, evidence });
    };
    const comparison = new Comparison(withProvider(other, { getCharge }));
    const id = await begin(other);
    await until(
      "a step that waits",
      () => comparison.step(id),
      (result) => result === "wait",
    );
    expect((await runsOf(harness))[0]).toMatchObject({ error: expect.stringContaining("verify") as string });
    expect(asked).toBe(1);
  });
});

test("a command's large window that was left behind does not hold up the worker's own", async () => {
  const { sql } = harness.deps.db;
  const left = await begin(harness.deps);
  await sql`update reconciliation_runs set started_at = now() - interval '1 hour'`;
  const worker = new Comparison(other);
  await worker.round();
  const steps = async () =>
    new Map((await runsOf(harness)).map(({ id, trigger, pages }) => [id === left ? "left" : trigger, pages]));
  expect(await steps()).toEqual(
    new Map([
      ["left", 0],
      ["worker", 1],
    ]),
  );
  await until(
    "an end of both",
    async () => {
      await worker.round();
      return runsOf(harness);
    },
    (runs) => runs.every(({ state }) => state === "completed"),
  );
});

test("what is old is deleted as fast as it comes, not a little of it a run", async () => {
  const { sql } = harness.deps.db;
  await sql`
    insert into reconciliation_findings (provider, kind, object_id, state, detail, first_run, last_run, last_seen_at,
      closed_at)
    select 'stripe', 'missing_here', 'pi_' || n, 'gone', 'made up', 'rec_0', 'rec_0', at, at
      from (select n, now() - case when n = 1 then interval '89 days' else interval '91 days' end as at
              from generate_series(1, 5000) n) made`;
  await new Comparison(other).round();
  expect(await findingWords(harness)).toEqual(["missing_here pi_1 gone"]);
});
