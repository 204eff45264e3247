import { afterAll, beforeAll, expect, test } from "vitest";
import { MARK_PARTS, markOpenAttempts } from "../../src/store/recovery.js";
import { documentOf, type Harness, pay, startHarness } from "../support/harness.js";

let harness: Harness;
beforeAll(async () => {
  harness = await startHarness({ workers: [] });
});
afterAll(() => harness.stop());

const LATER = "due_at = now() + interval '1 hour'";
const HELD = "lease_owner = 'one', lease_expires_at = now() + interval '1 hour'";
const ASKED_ABOUT = { wait_reason: "database_changed", nudged: true };

/** What an attempt with these columns is once a recovery has begun. */
async function marked(columns: string) {
  const { sql } = harness.deps.db;
  const { id } = documentOf(await pay(harness, { waitMs: 0 }));
  await sql`update attempts set ${sql.unsafe(columns)} where payment_id = ${id}`;
  for (let part = 0; part < MARK_PARTS; part += 1) await markOpenAttempts(sql, part);
  const [row] = await sql`
    select state, unresolved, wait_reason, nudged, unknown_since is not null as unknown, due_at <= now() as due
      from attempts where payment_id = ${id}`;
  return row;
}

test.each([
  ["that says it was never sent may have been", "state = 'started'", "create_unknown", true],
  [
    "of an effect that says so may have been, too",
    "state = 'started', kind = 'refund'",
    "send_unknown",
    true,
  ],
  ["whose object is there may have been confirmed", "state = 'charge_created'", "charge_created", true],
  ["that follows its object is asked about", `state = 'following', ${LATER}`, "following", false],
])("an open attempt %s", async (_name, columns, state, isUnknown) => {
  const unknown = { unresolved: isUnknown, unknown: isUnknown };
  expect(await marked(columns)).toEqual({ state, ...unknown, ...ASKED_ABOUT, due: true });
});

test("an attempt in somebody's hands keeps its state and its lease, and is due when that is given back", async () => {
  const row = await marked(`state = 'started', ${HELD}, ${LATER}`);
  expect(row).toEqual({ state: "started", unresolved: false, unknown: false, ...ASKED_ABOUT, due: false });
});

test.each(["key_mismatch", "provider_key_mismatch"])(
  "an attempt that waits for %s is a person's to judge, and not forgotten to be",
  async (reason) => {
    const row = await marked(`state = 'create_unknown', wait_reason = '${reason}', ${LATER}`);
    expect(row).toMatchObject({ wait_reason: reason, due: false });
  },
);

test("an attempt with which nothing is left to do stays as it is", async () => {
  const row = await marked("state = 'completed', due_at = null");
  expect(row).toMatchObject({ state: "completed", wait_reason: null, unresolved: false, due: null });
});
