import { readConfig, type WorkerName } from "../../src/config.js";
import { createLogger } from "../../src/lib/log.js";
import { authenticate } from "../../src/operations/authenticate.js";
import { createApiKey, createTenant } from "../../src/operations/manage-tenants.js";
import { type Pawl, wire } from "../../src/wire.js";
import type { Harness } from "./harness.js";

/** A process on another database than the harness's own, with the harness's provider. */
export async function processOn(
  harness: Harness,
  databaseUrl: string,
  options: { readonly env: Readonly<Record<string, string>>; readonly workers?: readonly WorkerName[] },
): Promise<Pawl> {
  const config = readConfig({
    POLL_INTERVAL_MS: "50",
    RECONCILE_INTERVAL_MS: "50",
    RETRY_FIRST_MS: "20",
    RETRY_MOST_MS: "200",
    FOLLOW_FIRST_MS: "50",
    FOLLOW_MOST_MS: "200",
    DATABASE_CHECK_INTERVAL_MS: "50",
    ...options.env,
  });
  const targets = { databaseUrl, stripeSecretKey: "sk_test_harness", stripeApiBase: harness.sandbox.url };
  const pawl = await wire(config, targets, createLogger({ level: "silent" }));
  await pawl.deps.account.resolve();
  await pawl.startWorkers(options.workers ?? []);
  await pawl.watchOutcomes();
  return pawl;
}

/** A harness whose process is this one, with a tenant of its own in that process's database. */
export async function tenantOn(pawl: Pawl, harness: Harness): Promise<Harness> {
  const { deps } = pawl;
  const tenant = await createTenant(deps, "restored");
  const key = await createApiKey(deps, { tenantId: tenant.id, scopes: null, livemode: false });
  const caller = key === null ? null : await authenticate(deps, key.secret);
  if (key === null || caller === null) throw new Error("the tenant vanished");
  return { ...harness, pawl, deps, caller, secret: key.secret };
}
