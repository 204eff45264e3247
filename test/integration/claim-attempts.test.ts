import { describe, expect, test } from "vitest";
import { type ClaimRequest, claimAttempts } from "../../src/store/attempts.js";
import { documentOf, type Harness, pay } from "../support/harness.js";
import { PATIENT, useStage } from "../support/stage.js";

const stage = useStage();

/** So many accepted payments that nobody works on until the test has ended. */
async function acceptedOnly(count: number): Promise<{ harness: Harness; ids: string[] }> {
  const harness = await stage.start({ workers: [] });
  const answers = await Promise.all(Array.from({ length: count }, () => pay(harness, { waitMs: 0 })));
  return { harness, ids: answers.map((answer) => documentOf(answer).id) };
}

function requestOf(harness: Harness, changes: Partial<ClaimRequest> = {}): ClaimRequest {
  const account = harness.deps.account.current();
  if (account.type !== "known") throw new Error("the account is not known");
  return {
    owner: "one",
    limit: 100,
    leaseMs: 60_000,
    retryBudgetMs: 120_000,
    account: account.accountId,
    livemode: false,
    tells: harness.deps.recovery.tells,
    which: "due",
    ...changes,
  };
}

/** Leases end and work goes on, so that the test can be settled. */
async function letWork(harness: Harness): Promise<void> {
  await harness.deps.db
    .sql`update attempts set lease_expires_at = now(), due_at = now() where due_at is not null`;
  await harness.another({ env: PATIENT });
}

describe("a claim", () => {
  test("takes what is due longest, up to its limit, with a higher fence, a lease and the mark of a create", async () => {
    const { harness, ids } = await acceptedOnly(3);
    const { sql } = harness.deps.db;
    for (const [at, id] of ids.entries()) {
      await sql`update attempts set due_at = now() - ${`${ids.length - at} minutes`}::interval where payment_id = ${id}`;
    }
    const claimed = await claimAttempts(sql, requestOf(harness, { limit: 2 }));
    expect(claimed.map((one) => one.attempt.paymentId).toSorted()).toEqual(ids.slice(0, 2).toSorted());
    for (const { attempt, markedNow, claimedAt } of claimed) {
      expect({ state: attempt.state, fence: attempt.fence, markedNow }).toEqual({
        state: "creating",
        fence: 1,
        markedNow: true,
      });
      expect(attempt.createFirstSentAt).toEqual(claimedAt);
    }
    const rows = await sql`
      select 1 from attempts where lease_owner = 'one' and lease_expires_at = due_at
         and lease_expires_at between now() + interval '50 seconds' and now() + interval '60 seconds'`;
    expect(rows).toHaveLength(2);
    await letWork(harness);
  });

  test.each(["due", "left"] as const)(
    "of what is %s never takes an attempt under a live lease, however due",
    async (which) => {
      const { harness } = await acceptedOnly(2);
      const { sql } = harness.deps.db;
      await claimAttempts(sql, requestOf(harness));
      await sql`update attempts set due_at = now() - interval '1 day'`;
      expect(await claimAttempts(sql, requestOf(harness, { owner: "two", which }))).toEqual([]);
      await letWork(harness);
    },
  );

  test.each(["due", "left"] as const)(
    "of what is %s takes over what a lease that ended left",
    async (which) => {
      const { harness } = await acceptedOnly(1);
      const { sql } = harness.deps.db;
      await claimAttempts(sql, requestOf(harness));
      await sql`update attempts set lease_expires_at = now(), due_at = now()`;
      const [taken] = await claimAttempts(sql, requestOf(harness, { owner: "two", which }));
      expect(taken).toMatchObject({ markedNow: false, attempt: { state: "creating", fence: 2 } });
      await letWork(harness);
    },
  );

  test("of what is left takes nothing that was never claimed", async () => {
    const { harness } = await acceptedOnly(1);
    expect(await claimAttempts(harness.deps.db.sql, requestOf(harness, { which: "left" }))).toEqual([]);
    await letWork(harness);
  });

  test("takes nothing that is due later or has ended", async () => {
    const { harness } = await acceptedOnly(2);
    const { sql } = harness.deps.db;
    const [first] = await sql<{ id: string }[]>`select id from attempts order by id`;
    const later = sql`case when id = ${first?.id ?? ""} then null else now() + interval '1 hour' end`;
    await sql`update attempts set due_at = ${later}`;
    expect(await claimAttempts(sql, requestOf(harness))).toEqual([]);
    await sql`update attempts set due_at = now()`;
    await letWork(harness);
  });

  test.each([
    ["another account", { account: "acct_other" }],
    ["an account that is not known", { account: null }],
    ["another mode", { livemode: true }],
    ["a budget that is over", { retryBudgetMs: 0 }],
  ])("under %s marks no create", async (_name, changes) => {
    const { harness } = await acceptedOnly(1);
    const [claimed] = await claimAttempts(harness.deps.db.sql, requestOf(harness, changes));
    expect(claimed).toMatchObject({
      markedNow: false,
      attempt: { state: "started", createFirstSentAt: null, fence: 1 },
    });
    await letWork(harness);
  });

  test("stamps the account on an attempt that was accepted without one, and on no other", async () => {
    const { harness } = await acceptedOnly(1);
    const { sql } = harness.deps.db;
    const own = requestOf(harness).account;
    await sql`update attempts set provider_account = null`;
    const [claimed] = await claimAttempts(sql, requestOf(harness));
    expect(claimed?.attempt.providerAccount).toBe(own);
    await sql`update attempts set lease_expires_at = now(), due_at = now()`;
    const [again] = await claimAttempts(sql, requestOf(harness, { account: "acct_other" }));
    expect(again?.attempt.providerAccount).toBe(own);
    await letWork(harness);
  });
});

test("claimers that race share what is due: each attempt goes to one of them", async () => {
  const { harness, ids } = await acceptedOnly(40);
  const other = await harness.another({ workers: [] });
  const claims = await Promise.all(
    Array.from({ length: 10 }, (_, at) => {
      const { sql } = (at % 2 === 0 ? harness : other).deps.db;
      return claimAttempts(sql, requestOf(harness, { owner: `worker-${at}`, limit: 7 }));
    }),
  );
  const taken = claims.flat().map((one) => one.attempt.paymentId);
  expect(taken).toHaveLength(40);
  expect(taken.toSorted()).toEqual(ids.toSorted());
  await letWork(harness);
});

test("a claim does not wait for rows that another transaction holds: it takes the others", async () => {
  const { harness } = await acceptedOnly(3);
  const other = await harness.another({ workers: [] });
  await harness.deps.db.sql.begin(async (tx) => {
    const [held] = await tx<{ id: string }[]>`select id from attempts order by id limit 1 for update`;
    const claimed = await claimAttempts(other.deps.db.sql, requestOf(harness));
    expect(claimed).toHaveLength(2);
    expect(claimed.map((one) => one.attempt.id)).not.toContain(held?.id);
  });
  await letWork(harness);
});
