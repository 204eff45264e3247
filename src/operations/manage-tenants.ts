import { DEFAULT_SCOPES, type Scope } from "../domain/scopes.js";
import { newId } from "../lib/ids.js";
import { withDatabase } from "../store/db.js";
import * as store from "../store/tenants.js";
import { hashSecret, newSecret } from "./authenticate.js";
import type { Deps } from "./deps.js";

type TenantDeps = Pick<Deps, "db" | "clock">;

export interface NewApiKey {
  readonly id: string;
  /** Shown this once: only its hash is stored. */
  readonly secret: string;
  readonly tenantId: string;
  readonly scopes: readonly Scope[];
}

export async function createTenant(deps: TenantDeps, name: string): Promise<{ id: string; name: string }> {
  const tenant = { id: newId("ten"), name };
  await withDatabase(() => store.insertTenant(deps.db, tenant));
  return tenant;
}

export function listTenants(deps: TenantDeps): Promise<store.Tenant[]> {
  return withDatabase(() => store.listTenants(deps.db));
}

export async function hasTenant(deps: TenantDeps, tenantId: string): Promise<boolean> {
  return (await withDatabase(() => store.readTenant(deps.db, tenantId))) !== null;
}

/** Null: there is no such tenant. */
export async function createApiKey(
  deps: TenantDeps,
  key: { readonly tenantId: string; readonly scopes: readonly Scope[] | null; readonly livemode: boolean },
): Promise<NewApiKey | null> {
  const tenant = await withDatabase(() => store.readTenant(deps.db, key.tenantId));
  if (tenant === null) return null;
  const id = newId("key");
  const secret = newSecret(key.livemode, tenant.id, id);
  const scopes = key.scopes ?? DEFAULT_SCOPES;
  await withDatabase(() =>
    store.insertApiKey(deps.db, {
      tenantId: tenant.id,
      id,
      secretHash: hashSecret(secret),
      scopes: [...scopes],
      livemode: key.livemode,
    }),
  );
  return { id, secret, tenantId: tenant.id, scopes };
}

export function listApiKeys(deps: TenantDeps, tenantId: string | null): Promise<store.ApiKey[]> {
  return withDatabase(() => store.listApiKeys(deps.db, tenantId));
}

/** When it was revoked; a second revocation tells the first one's time. Null: there is no such key. */
export function revokeApiKey(deps: TenantDeps, keyId: string): Promise<Date | null> {
  return withDatabase(() => store.revokeApiKey(deps.db, keyId, deps.clock.now()));
}
