import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Command } from "commander";
import { type Config, readConfig } from "../config.js";
import { startEmbeddedPostgres } from "../embedded-postgres/embedded-postgres.js";
import type { Logger } from "../lib/log.js";
import { authenticate } from "../operations/authenticate.js";
import { createApiKey, createTenant } from "../operations/manage-tenants.js";
import { startSandbox } from "../sandbox/sandbox.js";
import type { Listening, Pawl, Targets } from "../wire.js";
import {
  findProvider,
  loggerOf,
  postgresFolder,
  readSandboxNote,
  type SandboxNote,
  sandboxNotePath,
} from "./environment.js";
import { print } from "./output.js";
import { runProcess, signalled, stopAll } from "./run-process.js";

/** Where Stripe's own mock servers usually listen; another free port is taken where this one is in use. */
const SANDBOX_PORT = 12_111;
const OWNER_ONLY = { mode: 0o600 } as const;

export function startCommand(): Command {
  return new Command("start")
    .description(
      "everything in one process: database, sandbox, API and workers (each external where it is configured)",
    )
    .option("--json", "print the addresses as one JSON document")
    .action(async (options: { json?: boolean }) => start(readConfig(), options.json === true));
}

async function start(config: Config, json: boolean): Promise<void> {
  const stopAsked = signalled();
  const log = loggerOf(config);
  const afterwards: (() => Promise<void>)[] = [];
  mkdirSync(resolve(config.dataFolder), { recursive: true });
  const databaseUrl = await startDatabase(config, log, afterwards);
  try {
    const provider = await startProvider(config, afterwards);
    await runProcess(hearing(config, provider.sandbox), { databaseUrl, ...provider.targets }, log, {
      api: true,
      workers: config.workers,
      stopAsked,
      ready: async (pawl, listening) => {
        await provider.tellEventsTo(`${apiUrl(config, listening)}/v1/providers/stripe/webhooks`);
        await announce(config, json, pawl, listening, provider.sandbox);
      },
      afterwards,
    });
  } finally {
    // Each is stopped once: what runProcess has stopped is gone from the list.
    await stopAll(afterwards);
  }
}

async function startDatabase(
  config: Config,
  log: Logger,
  afterwards: (() => Promise<void>)[],
): Promise<string> {
  if (config.databaseUrl !== null) return config.databaseUrl;
  const postgres = await startEmbeddedPostgres({ folder: postgresFolder(config), log });
  afterwards.push(() => postgres.stop());
  return postgres.url;
}

interface StartedProvider {
  readonly targets: Pick<Targets, "stripeSecretKey" | "stripeApiBase">;
  readonly sandbox: SandboxNote | null;
  /** Points the bundled sandbox's events at this process; of any other provider the operator does that. */
  tellEventsTo(url: string): Promise<void>;
}

/** The sandbox's own secret verifies too, whatever else is set. */
function hearing(config: Config, sandbox: SandboxNote | null): Config {
  if (sandbox === null) return config;
  const stripeWebhookSecrets = [...config.settings.stripeWebhookSecrets, sandbox.webhook_secret];
  return { ...config, settings: { ...config.settings, stripeWebhookSecrets } };
}

async function startProvider(config: Config, afterwards: (() => Promise<void>)[]): Promise<StartedProvider> {
  if (config.stripeSecretKey !== null || config.stripeApiBase !== null) {
    return { targets: findProvider(config), sandbox: null, tellEventsTo: () => Promise.resolve() };
  }
  const stateDir = join(resolve(config.dataFolder), "sandbox");
  const sandbox = await startSandbox({ port: SANDBOX_PORT, stateDir }).catch((error: unknown) => {
    if ((error as { code?: string }).code !== "EADDRINUSE") throw error;
    return startSandbox({ port: 0, stateDir });
  });
  afterwards.unshift(() => sandbox.stop());
  const kept = readSandboxNote(config);
  const note: SandboxNote = {
    url: sandbox.url,
    control_url: sandbox.controlUrl,
    secret_key: kept?.secret_key ?? `sk_test_${randomBytes(24).toString("hex")}`,
    webhook_secret: kept?.webhook_secret ?? `whsec_${randomBytes(24).toString("hex")}`,
  };
  writeFileSync(sandboxNotePath(config), JSON.stringify(note), OWNER_ONLY);
  return {
    targets: { stripeSecretKey: note.secret_key, stripeApiBase: note.url },
    sandbox: note,
    tellEventsTo: async (url) => {
      await sandbox.control.addWebhookEndpoint({ url, secrets: [note.webhook_secret] });
    },
  };
}

/** Made once for the embedded database in test mode, and kept: a development key that changes would be a nuisance. */
async function developmentKey(config: Config, pawl: Pawl): Promise<string | null> {
  if (config.databaseUrl !== null || pawl.deps.provider.livemode) return null;
  const path = join(resolve(config.dataFolder), "development-key");
  const kept = existsSync(path) ? readFileSync(path, "utf8").trim() : null;
  if (kept !== null && (await authenticate(pawl.deps, kept)) !== null) return kept;
  const tenant = await createTenant(pawl.deps, "development");
  const key = await createApiKey(pawl.deps, { tenantId: tenant.id, scopes: null, livemode: false });
  if (key === null) throw new Error("the development tenant vanished");
  writeFileSync(path, `${key.secret}\n`, OWNER_ONLY);
  return key.secret;
}

async function announce(
  config: Config,
  json: boolean,
  pawl: Pawl,
  listening: Listening,
  sandbox: SandboxNote | null,
): Promise<void> {
  const api = apiUrl(config, listening);
  const admin = `http://${hostForUrl(config.adminHost)}:${listening.adminPort}`;
  const key = await developmentKey(config, pawl);
  const document = {
    api_url: api,
    admin_url: admin,
    api_key: key,
    sandbox_url: sandbox?.url ?? null,
    sandbox_control_url: sandbox?.control_url ?? null,
  };
  const curl = [
    `  curl -s ${api}/v1/payments -H 'Content-Type: application/json' \\`,
    `    -H 'Authorization: Bearer ${key ?? "<API key>"}' -H 'Idempotency-Key: first-payment' \\`,
    `    -d '{"amount": 4200, "currency": "usd", "payment_method": "pm_card_visa"}'`,
  ];
  print(json, document, [
    `Pawl listens on ${api} (documentation: ${api}/docs, operator: ${admin})`,
    ...(sandbox === null ? [] : [`Stripe sandbox: ${sandbox.url} (control: ${sandbox.control_url})`]),
    ...(key === null ? [] : [`Development API key: ${key}`]),
    "Make a payment:",
    "",
    ...curl,
    "",
  ]);
}

function apiUrl(config: Config, listening: Listening): string {
  return `http://${hostForUrl(config.host)}:${listening.apiPort ?? 0}`;
}

function hostForUrl(host: string): string {
  if (host === "0.0.0.0" || host === "::") return "127.0.0.1";
  return host.includes(":") ? `[${host}]` : host;
}
