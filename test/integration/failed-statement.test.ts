import { afterAll, beforeAll, expect, it } from "vitest";
import { type Database, openDatabase } from "../../src/store/db.js";
import { createTestDatabase, type TestDatabase } from "../support/test-database.js";

let fresh: TestDatabase;
let db: Database;

beforeAll(async () => {
  fresh = await createTestDatabase();
  // One connection: the next statement goes where the failed one went.
  db = await openDatabase({ url: fresh.url, poolMax: 1, prepare: true });
});
afterAll(async () => {
  await db.close();
  await fresh.drop();
});

/** Two rows are on their way when it fails, as those of an accept that then loses its order id. */
const failing = () => db.sql`select 1 / (3 - i) from generate_series(1, 9) as i`;

it("the statement after one that failed with rows on their way has its own rows and nothing else", async () => {
  await expect(failing()).rejects.toMatchObject({ code: "22012" });
  const rows = await db.sql<{ x: number }[]>`select ${7}::int as x`;
  expect([rows.length, rows[0]?.x]).toEqual([1, 7]);

  await expect(failing()).rejects.toMatchObject({ code: "22012" });
  expect(await db.sql.unsafe("select 8 as x")).toMatchObject([{ x: 8 }]);

  const [, behind] = await Promise.allSettled([failing(), db.sql`select 9 as x`]);
  expect(behind).toMatchObject({ status: "fulfilled", value: [{ x: 9 }] });
});
