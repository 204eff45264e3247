import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { attemptIdOf } from "../../src/operations/attempt-id.js";
import { earlierRunsOf } from "../../src/operations/earlier-runs.js";
import { hurryEarlierRuns, readAttempt } from "../../src/store/attempts.js";
import { documentOf, type Harness, newKey, pay, startHarness } from "../support/harness.js";

let harness: Harness;
beforeAll(async () => {
  harness = await startHarness({ workers: [] });
});
afterAll(() => harness.stop());

const tenantId = () => harness.caller.tenantId;

/** A charge's attempt with these columns, and its payment with that status. */
async function attemptWith(columns: string, status = "processing"): Promise<{ id: string; key: string }> {
  const { sql } = harness.deps.db;
  const key = newKey();
  const { id: paymentId } = documentOf(await pay(harness, { key, waitMs: 0 }));
  await sql`update payments set status = ${status} where id = ${paymentId}`;
  const [row] = await sql<{ id: string }[]>`
    update attempts set ${sql.unsafe(columns)} where payment_id = ${paymentId} returning id`;
  return { id: row?.id ?? "", key };
}

/** When it is due: now, later, or never. */
async function due(id: string): Promise<string> {
  const [row] = await harness.deps.db.sql<{ due: string }[]>`
    select case when due_at is null then 'never' when due_at <= now() then 'now' else 'later' end as due
      from attempts where id = ${id}`;
  return row?.due ?? "";
}

const LATER = "due_at = now() + interval '1 hour'";

describe("an earlier run of a key that now runs again", () => {
  test.each([
    ["is asked about at once where its outcome is unknown", `state = 'create_unknown', ${LATER}`, "now"],
    [
      "is so where it ended on the word of its row",
      `state = 'completed', unresolved = true, ${LATER}`,
      "now",
    ],
    [
      "is so where nothing was left to do about it",
      "state = 'completed', unresolved = true, due_at = null",
      "now",
    ],
    [
      "is so where the lease of who held it has ended",
      `state = 'creating', lease_expires_at = now(), ${LATER}`,
      "now",
    ],
    [
      "is left to who holds it",
      `state = 'creating', lease_expires_at = now() + interval '1 hour', ${LATER}`,
      "later",
    ],
    ["is not asked about again where the provider has spoken", "state = 'completed', due_at = null", "never"],
  ])("%s", async (_name, columns, when) => {
    const { id } = await attemptWith(columns);
    expect(await hurryEarlierRuns(harness.deps.db.sql, tenantId(), [id])).toHaveLength(1);
    expect(await due(id)).toBe(when);
  });

  test("is its own tenant's alone", async () => {
    const { id } = await attemptWith(`state = 'create_unknown', ${LATER}`);
    expect(await hurryEarlierRuns(harness.deps.db.sql, "ten_other", [id])).toEqual([]);
    expect(await due(id)).toBe("later");
  });
});

describe("a run of a key after the first", () => {
  /** Run 2 of a key whose run 1 is as `columns` and `status` say, and how often workers were told to look. */
  async function asksAbout(
    columns: string,
    status: string,
    run: Partial<{ kind: "capture"; state: string }> = {},
  ) {
    const { id, key } = await attemptWith(columns, status);
    const read = await readAttempt(harness.deps.db.sql, tenantId(), id);
    if (read === null) throw new Error("it was accepted");
    let told = 0;
    const deps = { ...harness.deps, due: { ...harness.deps.due, dueNow: () => (told += 1) } };
    const second = { ...read.attempt, state: "started" as const, ...run, run: 2, id: "att_second" };
    expect(id).toBe(
      attemptIdOf(deps.installationSecret, { tenantId: tenantId(), operation: second.operation, key }, 1),
    );
    return { earlier: await earlierRunsOf(deps, second as typeof read.attempt), told };
  }

  test("waits for one that is open, and a worker is told at once that there is something to ask", async () => {
    const open = await asksAbout(`state = 'create_unknown', ${LATER}`, "processing");
    expect(open).toEqual({ earlier: "open", told: 1 });
  });

  test("disturbs nobody where each has had its answer", async () => {
    const ended = "state = 'completed', unresolved = false, due_at = null";
    expect(await asksAbout(ended, "failed")).toEqual({ earlier: "harmless", told: 0 });
    expect(await asksAbout(ended, "authorized")).toEqual({ earlier: "performed", told: 0 });
  });

  test("asks nobody once its own object is there: it can charge no second time then", async () => {
    const paid = "state = 'completed', due_at = null";
    expect(await asksAbout(paid, "succeeded", { state: "charge_created" })).toEqual({
      earlier: "harmless",
      told: 0,
    });
  });
});
