import { expect, test } from "vitest";
import { openDatabase } from "../../src/store/db.js";
import { createTestDatabase } from "../support/test-database.js";

/** After so long whoever waits for a statement is told that the database is away (src/store/db.ts). */
const DEADLINE_MS = 8_000;

test("a statement ends before nobody waits for it any more, so that it cannot be done later", async () => {
  const database = await createTestDatabase();
  const db = await openDatabase({ url: database.url, poolMax: 1, prepare: true });
  try {
    const [row] = await db.sql<{ timeout: string }[]>`
      select setting as timeout from pg_settings where name = 'statement_timeout'`;
    const timeoutMs = Number(row?.timeout);
    expect(timeoutMs).toBeGreaterThan(0);
    expect(timeoutMs).toBeLessThan(DEADLINE_MS);
  } finally {
    await db.close();
    await database.drop();
  }
});
