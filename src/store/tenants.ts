import { and, desc, eq, isNull } from "drizzle-orm";
import type { Database } from "./db.js";
import { apiKeys, installation, providerAccounts, tenants } from "./schema.js";

export interface Tenant {
  readonly id: string;
  readonly name: string;
  readonly createdAt: Date;
}

export interface ApiKey {
  readonly tenantId: string;
  readonly id: string;
  readonly secretHash: string;
  readonly scopes: string[];
  readonly livemode: boolean;
  readonly createdAt: Date;
  readonly revokedAt: Date | null;
}

export async function insertTenant(db: Database, tenant: { id: string; name: string }): Promise<void> {
  await db.read.insert(tenants).values(tenant);
}

export async function listTenants(db: Database): Promise<Tenant[]> {
  return db.read.select().from(tenants).orderBy(tenants.id);
}

export async function readTenant(db: Database, tenantId: string): Promise<Tenant | null> {
  const [row] = await db.read.select().from(tenants).where(eq(tenants.id, tenantId));
  return row ?? null;
}

export async function insertApiKey(
  db: Database,
  key: Omit<ApiKey, "createdAt" | "revokedAt">,
): Promise<void> {
  await db.read.insert(apiKeys).values(key);
}

export async function readApiKey(db: Database, tenantId: string, keyId: string): Promise<ApiKey | null> {
  const [row] = await db.read
    .select()
    .from(apiKeys)
    .where(and(eq(apiKeys.tenantId, tenantId), eq(apiKeys.id, keyId)));
  return row ?? null;
}

/** Across tenants where none is named: for the operator's command line, never for a request. */
export async function listApiKeys(db: Database, tenantId: string | null): Promise<ApiKey[]> {
  const all = db.read.select().from(apiKeys).orderBy(desc(apiKeys.id));
  return tenantId === null ? all : all.where(eq(apiKeys.tenantId, tenantId));
}

/** When the key was revoked, also where it had been revoked before; null: there is no such key. */
export async function revokeApiKey(db: Database, keyId: string, now: Date): Promise<Date | null> {
  await db.read
    .update(apiKeys)
    .set({ revokedAt: now })
    .where(and(eq(apiKeys.id, keyId), isNull(apiKeys.revokedAt)));
  const [row] = await db.read.select().from(apiKeys).where(eq(apiKeys.id, keyId));
  return row?.revokedAt ?? null;
}

/** The installation's secret: the given one where this is the first start, else the one that is kept. */
export async function readOrKeepInstallationSecret(db: Database, fresh: string): Promise<string> {
  await db.read.insert(installation).values({ secret: fresh }).onConflictDoNothing();
  const [row] = await db.read.select().from(installation);
  if (row === undefined) throw new Error("the installation row is missing");
  return row.secret;
}

export async function rememberAccount(
  db: Database,
  account: { provider: string; credentialDigest: string; accountId: string },
): Promise<void> {
  await db.read.insert(providerAccounts).values(account).onConflictDoNothing();
}

export async function recallAccount(
  db: Database,
  provider: string,
  credentialDigest: string,
): Promise<string | null> {
  const [row] = await db.read
    .select()
    .from(providerAccounts)
    .where(
      and(eq(providerAccounts.provider, provider), eq(providerAccounts.credentialDigest, credentialDigest)),
    );
  return row?.accountId ?? null;
}
