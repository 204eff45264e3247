import { randomBytes } from "node:crypto";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { drizzle } from "drizzle-orm/postgres-js";
import { migrate } from "drizzle-orm/postgres-js/migrator";
import postgres from "postgres";
import { inject } from "vitest";

const FOLDER = "drizzle";

interface Journal {
  readonly entries: readonly { readonly tag: string }[];
}

/** The migrations' names, in their order. */
export function migrationNames(): string[] {
  return readJournal().entries.map(({ tag }) => tag);
}

function readJournal(): Journal {
  return JSON.parse(readFileSync(join(FOLDER, "meta/_journal.json"), "utf8")) as Journal;
}

export interface OldDatabase {
  readonly url: string;
  /** As superuser. */
  readonly admin: postgres.Sql;
  readonly drop: () => Promise<void>;
}

/** A database as the version had it whose last migration is this one: all before it were applied at once. */
export async function databaseOf(last: string): Promise<OldDatabase> {
  const { adminUrl } = inject("postgres");
  const name = `old_${randomBytes(8).toString("hex")}`;
  const url = new URL(adminUrl);
  url.pathname = `/${name}`;
  const options = { max: 1, fetch_types: false, onnotice: () => undefined };
  const server = postgres(adminUrl, options);
  await server`create database ${server(name)}`;
  await migrateUpTo(url.href, last);
  const admin = postgres(url.href, options);
  return {
    url: url.href,
    admin,
    drop: async () => {
      await admin.end();
      await server`drop database ${server(name)} with (force)`;
      await server.end();
    },
  };
}

async function migrateUpTo(url: string, last: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "pawl-migrations-"));
  const worker = postgres(url, { max: 1, onnotice: () => undefined });
  try {
    cpSync(FOLDER, folder, { recursive: true });
    const journal = readJournal();
    const end = journal.entries.findIndex(({ tag }) => tag === last) + 1;
    if (end === 0) throw new Error(`no migration ${last}`);
    const cut = { ...journal, entries: journal.entries.slice(0, end) };
    writeFileSync(join(folder, "meta/_journal.json"), JSON.stringify(cut));
    await migrate(drizzle(worker), { migrationsFolder: folder });
  } finally {
    await worker.end();
    rmSync(folder, { recursive: true, force: true });
  }
}
