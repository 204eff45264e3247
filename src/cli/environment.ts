import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { type Config, readConfig } from "../config.js";
import { findEmbeddedPostgres } from "../embedded-postgres/find-embedded-postgres.js";
import { createLogger, type Logger } from "../lib/log.js";
import { openStore, type Store, type Targets } from "../wire.js";
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
  const store = await openStore(config, url, createLogger({ level: "error" })).catch((error: unknown) => {
    const code = (error as { code?: string }).code ?? (error as Error).name;
    throw new CommandFailed(`DATABASE_URL: the database cannot be used (${code})`);
  });
  try {
    return await work(store, config);
  } finally {
    await store.close();
  }
}
