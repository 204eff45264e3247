import { Command } from "commander";
import { isLiveKey, readConfig } from "../config.js";
import { paymentDocument } from "../domain/documents.js";
import { isScope, SCOPES, type Scope } from "../domain/scopes.js";
import { timelineEntryDocument } from "../domain/timeline-entry.js";
import {
  createApiKey,
  createTenant,
  listApiKeys,
  listTenants,
  revokeApiKey,
} from "../operations/manage-tenants.js";
import { purgeExpired } from "../operations/purge-expired.js";
import { showPayment } from "../operations/show-payment.js";
import { findDatabase, loggerOf, migrateOrFail, withStore } from "./environment.js";
import { CommandFailed, JSON_OPTION, type Json, print, table, WrongUsage } from "./output.js";
import { requireTenant } from "./tenant-option.js";

export function migrateCommand(): Command {
  return new Command("migrate")
    .description("bring the database's schema up to date")
    .option(...JSON_OPTION)
    .action(async ({ json }: Json) => {
      const config = readConfig();
      await migrateOrFail(await findDatabase(config), loggerOf(config));
      print(json === true, { migrated: true }, ["The schema is up to date."]);
    });
}

export function tenantsCommand(): Command {
  const tenants = new Command("tenants").description("tenants: whose payments these are");
  tenants
    .command("create")
    .description("make a tenant")
    .requiredOption("--name <name>", "shown to people")
    .option(...JSON_OPTION)
    .action(async ({ name, json }: Json & { name: string }) => {
      if (name.trim() === "") throw new WrongUsage("--name: must not be empty");
      const tenant = await withStore((store) => createTenant(store, name));
      print(json === true, tenant, [`${tenant.id}  ${tenant.name}`]);
    });
  tenants
    .command("list")
    .description("all tenants")
    .option(...JSON_OPTION)
    .action(async ({ json }: Json) => {
      const all = await withStore(listTenants);
      const data = all.map(({ id, name, createdAt }) => ({ id, name, created_at: createdAt.toISOString() }));
      print(
        json === true,
        { data },
        table(
          ["ID", "NAME"],
          data.map(({ id, name }) => [id, name]),
        ),
      );
    });
  return tenants;
}

export function keysCommand(): Command {
  const keys = new Command("keys").description("API keys of a tenant");
  keys
    .command("create")
    .description("make a key; its secret is shown this once")
    .requiredOption("--tenant <id>", "ten_…")
    .option("--scopes <list>", `comma-separated: ${SCOPES.join(", ")} (default: all but admin)`)
    .option(...JSON_OPTION)
    .action(async ({ tenant, scopes, json }: Json & { tenant: string; scopes?: string }) => {
      const wanted = scopes === undefined ? null : readScopes(scopes);
      const key = await withStore((store, config) =>
        createApiKey(store, {
          tenantId: tenant,
          scopes: wanted,
          livemode: config.stripeSecretKey !== null && isLiveKey(config.stripeSecretKey),
        }),
      );
      if (key === null) throw new CommandFailed(`--tenant: there is no tenant ${tenant}`);
      const document = { id: key.id, secret: key.secret, tenant_id: key.tenantId, scopes: key.scopes };
      print(json === true, document, [
        `${key.id}  ${key.scopes.join(",")}`,
        `secret (shown this once): ${key.secret}`,
      ]);
    });
  keys
    .command("list")
    .description("keys, without their secrets")
    .option("--tenant <id>", "of this tenant alone")
    .option(...JSON_OPTION)
    .action(async ({ tenant, json }: Json & { tenant?: string }) => {
      const all = await withStore(async (store) => {
        await requireTenant(store, tenant);
        return listApiKeys(store, tenant ?? null);
      });
      const data = all.map((key) => ({
        id: key.id,
        tenant_id: key.tenantId,
        scopes: key.scopes,
        livemode: key.livemode,
        created_at: key.createdAt.toISOString(),
        revoked_at: key.revokedAt?.toISOString() ?? null,
      }));
      const rows = data.map((key) => [
        key.id,
        key.tenant_id,
        key.scopes.join(","),
        key.revoked_at ?? "active",
      ]);
      print(json === true, { data }, table(["ID", "TENANT", "SCOPES", "REVOKED"], rows));
    });
  keys
    .command("revoke")
    .description("end a key: within seconds on every process, for replays too")
    .argument("<id>", "key_…")
    .option(...JSON_OPTION)
    .action(async (id: string, { json }: Json) => {
      const revokedAt = await withStore((store) => revokeApiKey(store, id));
      if (revokedAt === null) throw new CommandFailed(`there is no key ${id}`);
      print(json === true, { id, revoked_at: revokedAt.toISOString() }, [
        `${id} revoked at ${revokedAt.toISOString()}`,
      ]);
    });
  return keys;
}

function readScopes(list: string): Scope[] {
  const names = list.split(",").map((name) => name.trim());
  const unknown = names.find((name) => !isScope(name));
  if (unknown !== undefined) throw new WrongUsage(`--scopes: ${unknown} is not one of ${SCOPES.join(", ")}`);
  return names.filter(isScope);
}

export function paymentsCommand(): Command {
  const payments = new Command("payments").description("look into payments");
  payments
    .command("show")
    .description("a payment with its whole timeline")
    .argument("<id>", "pay_…")
    .option(...JSON_OPTION)
    .action(async (id: string, { json }: Json) => {
      const shown = await withStore((store) => showPayment(store, id));
      if (shown === null) throw new CommandFailed(`there is no payment ${id}`);
      const { payment, timeline } = shown;
      const entries = timeline.map(timelineEntryDocument);
      const rows = timeline.map((entry) => [
        entry.at.toISOString(),
        entry.to === null ? entry.kind : `${entry.from ?? "-"} → ${entry.to}`,
        entry.call ?? "",
        entry.outcome ?? entry.reason,
        entry.providerRequestId ?? "",
      ]);
      print(json === true, { ...paymentDocument(payment), tenant_id: payment.tenantId, timeline: entries }, [
        `${payment.id}  ${payment.status}  ${payment.amount} ${payment.currency}  ${payment.providerPaymentId ?? "no provider object"}`,
        ...(payment.resolution === null
          ? []
          : [
              `${payment.resolution.state}: ${payment.resolution.reason}, next look ${payment.resolution.next_check_at ?? "-"}`,
            ]),
        ...table(["AT", "WHAT", "CALL", "OUTCOME", "PROVIDER REQUEST"], rows),
      ]);
    });
  return payments;
}

export function purgeCommand(): Command {
  return new Command("purge")
    .description("delete finished idempotency keys past their retention, all of them, in batches")
    .option(...JSON_OPTION)
    .action(async ({ json }: Json) => {
      const purged = await withStore(async (store) => {
        let total = 0;
        let batch: number;
        do {
          batch = await purgeExpired(store);
          total += batch;
        } while (batch > 0);
        return total;
      });
      print(json === true, { purged }, [`${purged} expired keys deleted`]);
    });
}
