import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { type Config, readConfig } from "../config.js";
import { findEmbeddedPostgres } from "../embedded-postgres/find-embedded-postgres.js";
import { createLogger, type Logger } from "../lib/log.js";
import { migrate, openStore, type Pawl, type Store, type Targets, wire } from "../wire.js";
import { CommandFailed } from "./output.js";

/** What `pawl start` leaves under the data folder for commands beside it. */
export interface SandboxNote {
  readonly url: string;
  readonly control_url: string;
  readonly secret_key: string;
  /** What the sandbox signs its events with. */
  readonly webhook_secret: string;
}

export function postgresFolder(config: Config): string {
  return join(resolve(config.dataFolder), "postgres");
}

export function sandboxNotePath(config: Config): string {
  return join(resolve(config.dataFolder), "sandbox.json");
}

/** The configured database, or the embedded one that a running `pawl start` of this folder has. */
export async function findDatabase(config: Config): Promise<string> {
  if (config.databaseUrl !== null) return config.databaseUrl;
  const found = await findEmbeddedPostgres(postgresFolder(config));
  if (found !== null) return found.url;
  throw new CommandFailed(
    "DATABASE_URL: not set, and no embedded PostgreSQL is running here (npm start runs one)",
  );
}

export function readSandboxNote(config: Config): SandboxNote | null {
  const path = sandboxNotePath(config);
  return existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as SandboxNote) : null;
}

/** The configured provider, or the sandbox that a running `pawl start` of this folder has. */
export function findProvider(config: Config): Pick<Targets, "stripeSecretKey" | "stripeApiBase"> {
  if (config.stripeSecretKey !== null) {
    return { stripeSecretKey: config.stripeSecretKey, stripeApiBase: config.stripeApiBase };
  }
  if (config.stripeApiBase !== null) {
    throw new CommandFailed("STRIPE_SECRET_KEY: must be set where STRIPE_API_BASE is");
  }
  const note = readSandboxNote(config);
  if (note !== null) return { stripeSecretKey: note.secret_key, stripeApiBase: note.url };
  throw new CommandFailed("STRIPE_SECRET_KEY: not set, and no sandbox is running here (npm start runs one)");
}

export function loggerOf(config: Config): Logger {
  return createLogger({ level: config.logLevel });
}

/** For commands that read or write the database and end. */
export async function withStore<T>(work: (store: Store, config: Config) => Promise<T>): Promise<T> {
  const config = readConfig();
  const url = await findDatabase(config);
  const store = await openStore(config, url, createLogger({ level: "error" })).catch(cannotBeUsed);
  try {
    return await work(store, config);
  } catch (error) {
    if (NOT_MIGRATED.has(codeOf(error))) cannotBeUsed(error);
    throw error;
  } finally {
    await store.close();
  }
}

/** A wired process without listeners and workers; its attempts are driven by those that run elsewhere. */
export async function withPawl(work: (pawl: Pawl) => Promise<void>): Promise<void> {
  const config = readConfig();
  const databaseUrl = await findDatabase(config);
  const targets = { databaseUrl, ...findProvider(config) };
  const pawl = await wire(config, targets, createLogger({ level: "fatal" })).catch(cannotBeUsed);
  try {
    await work(pawl);
  } finally {
    await pawl.drain(0);
    await pawl.close();
  }
}

/** Brings the schema up to date. Throws CommandFailed where the database cannot be had, or does not let us. */
export async function migrateOrFail(databaseUrl: string, log: Logger): Promise<void> {
  await migrate(databaseUrl, log).catch((error: unknown) => {
    throw new CommandFailed(`DATABASE_URL: the database cannot be brought up to date (${codeOf(error)})`);
  });
}

/** SQLSTATEs of a schema without a table or column that this version has: undefined_table, undefined_column. */
const NOT_MIGRATED: ReadonlySet<string> = new Set(["42P01", "42703"]);

function cannotBeUsed(error: unknown): never {
  const code = codeOf(error);
  const advice = NOT_MIGRATED.has(code) ? ": `pawl migrate` brings it up to date" : "";
  throw new CommandFailed(`DATABASE_URL: the database cannot be used (${code})${advice}`);
}

/** What may be shown of an error of the database's client, whose message holds SQL and parameters. */
function codeOf(error: unknown): string {
  const { code, cause, name } = error as { code?: string; cause?: unknown; name: string };
  return code ?? (cause instanceof Error ? codeOf(cause) : name);
}
