import { randomBytes } from "node:crypto";
import postgres from "postgres";

/** Runs one statement over a connection of its own; null values and all, as the first row. */
export async function firstRow(url: string, statement: string): Promise<Record<string, unknown>> {
  const client = postgres(url, { max: 1, onnotice: () => undefined, connect_timeout: 5 });
  try {
    const rows = await client.unsafe(statement);
    return rows[0] ?? {};
  } finally {
    await client.end();
  }
}

export const KEPT_ROW = { value: 42 };

/** Commits KEPT_ROW to a table of its own; returns the statement that reads it back. */
export async function commitRow(url: string): Promise<string> {
  const table = `kept_${randomBytes(8).toString("hex")}`;
  await firstRow(url, `create table ${table} (value int)`);
  await firstRow(url, `insert into ${table} values (42)`);
  return `select value from ${table}`;
}
