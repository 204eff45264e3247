import { describe, expect, test } from "vitest";
import type { Deps } from "../../src/operations/deps.js";
import { endRecoveryNow } from "../../src/operations/recover.js";
import { runAttempt } from "../../src/operations/run-attempt.js";
import { claimAttempts } from "../../src/store/attempts.js";
import { refund } from "../support/effects.js";
import { documentOf, type Harness, pay, untilStatus } from "../support/harness.js";
import { onlyObject, PATIENT, useStage, wireOf } from "../support/stage.js";

/**
 * A process looks now and then whether the database is another one. What it sends in between must not rest on that look:
 * these processes look once an hour.
 */
const stage = useStage();
const LOOKS_SELDOM = { ...PATIENT, DATABASE_CHECK_INTERVAL_MS: "3600000" };

/** What a restore or a failover leaves: the row of `installation` tells of another place, or another process has seen it. */
const MOVES = {
  "in another cluster": `update installation set system_identifier = '1/' || split_part(system_identifier, '/', 2)`,
  "restored into another database": `update installation set system_identifier =
    split_part(system_identifier, '/', 1) || '/1.1'`,
  "a standby that was promoted": "update installation set cluster_timeline = 0",
  "recovering, as another process has seen":
    "update installation set recovering_since = now(), recovery_reason = 'x'",
} as const;
const ALL_MOVES = Object.keys(MOVES) as (keyof typeof MOVES)[];

function seldomLooking(): Promise<Harness> {
  return stage.start({ workers: [], env: LOOKS_SELDOM });
}

async function move(harness: Harness, how: keyof typeof MOVES): Promise<void> {
  await harness.deps.db.sql.unsafe(MOVES[how]);
  expect(harness.deps.recovery.isRecovering()).toBe(false);
}

/** One worker's turn at the only due attempt; `at` a point of it, something happens. */
async function work(
  { deps }: Harness,
  at: {
    readonly point: string;
    readonly happens: () => Promise<void>;
    readonly standsStillMs?: number;
  } | null,
): Promise<void> {
  let stoodStillMs = 0;
  const watched: Deps = {
    ...deps,
    clock: { ...deps.clock, monotonicMs: () => deps.clock.monotonicMs() + stoodStillMs },
    probe: async (point) => {
      if (point !== at?.point) return;
      await at.happens();
      stoodStillMs = at.standsStillMs ?? 0;
    },
  };
  const account = deps.account.current();
  if (account.type !== "known") throw new Error("the account is not known");
  const claimedAtMs = deps.clock.monotonicMs();
  const [claimed, more] = await claimAttempts(deps.db.sql, {
    owner: deps.workerName,
    limit: 2,
    leaseMs: deps.settings.attemptLeaseMs,
    retryBudgetMs: deps.settings.retryBudgetMs,
    account: account.accountId,
    livemode: false,
    tells: deps.recovery.tells,
    which: "due",
  });
  if (claimed === undefined || more !== undefined) throw new Error("not one attempt was due");
  await runAttempt(watched, claimed, claimedAtMs);
}

async function waitsFor({ deps }: Harness): Promise<unknown> {
  const [row] = await deps.db.sql<{ wait_reason: string | null }[]>`
    select wait_reason from attempts where due_at is not null`;
  return row?.wait_reason ?? null;
}

/** A person says that nothing was lost, and workers go on. */
async function goOn(harness: Harness): Promise<void> {
  await harness.deps.recovery.check();
  expect(await endRecoveryNow(harness.deps, "a drill")).toBe(true);
  await harness.deps.db
    .sql`update attempts set lease_expires_at = null, due_at = now() where due_at is not null`;
  await harness.another({ env: LOOKS_SELDOM });
}

describe.each(ALL_MOVES)("in a database that is %s, a process that has not looked", (how) => {
  test("sends no create: it looks, and asks", async () => {
    const harness = await seldomLooking();
    const { id } = documentOf(await pay(harness, { waitMs: 0 }));
    await move(harness, how);
    await work(harness, null);
    expect((await wireOf(harness)).filter((call) => !call.startsWith("list"))).toEqual([]);
    expect(harness.deps.recovery.isRecovering()).toBe(true);
    expect(await waitsFor(harness)).toBe("recovering");
    await goOn(harness);
    await untilStatus(harness, id, "succeeded");
  });

  test("sends no confirm behind its own create, and keeps what it has learned", async () => {
    const harness = await seldomLooking();
    const { id } = documentOf(await pay(harness, { waitMs: 0 }));
    await work(harness, { point: "after_create", happens: () => move(harness, how) });
    expect(await wireOf(harness)).toEqual(["create 200"]);
    expect(await waitsFor(harness)).toBe("recovering");
    const object = await onlyObject(harness);
    expect(await harness.deps.db.sql`select provider_payment_id as id from attempts`).toEqual([
      { id: object.payment_intent.id },
    ]);
    await goOn(harness);
    await untilStatus(harness, id, "succeeded");
  });

  test("sends no refund", async () => {
    const harness = await seldomLooking();
    const { id } = documentOf(await pay(harness, { waitMs: 0 }));
    await work(harness, null);
    await refund(harness, id, 100, { waitMs: 0 });
    await move(harness, how);
    await work(harness, null);
    expect(await wireOf(harness, { call: "refunds.create" })).toEqual([]);
    expect(await waitsFor(harness)).toBe("recovering");
    await goOn(harness);
  });

  test("that stood still since it marked its send does not make it", async () => {
    const harness = await seldomLooking();
    const { id } = documentOf(await pay(harness, { waitMs: 0 }));
    await work(harness, { point: "before_create", happens: () => move(harness, how), standsStillMs: 6_000 });
    expect(await wireOf(harness)).toEqual([]);
    await goOn(harness);
    await untilStatus(harness, id, "succeeded");
  });
});

test("a send that stood still for a while is marked again and made, where the database is in its place", async () => {
  const harness = await seldomLooking();
  const { id } = documentOf(await pay(harness, { waitMs: 0 }));
  const nothing = () => Promise.resolve();
  await work(harness, { point: "before_create", happens: nothing, standsStillMs: 6_000 });
  expect(await wireOf(harness)).toEqual(["create 200", "confirm 200"]);
  await untilStatus(harness, id, "succeeded");
});
