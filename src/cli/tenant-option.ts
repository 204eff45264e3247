import { hasTenant } from "../operations/manage-tenants.js";
import type { Store } from "../wire.js";
import { CommandFailed } from "./output.js";

/** Throws CommandFailed for a tenant that is not here: of it there would be nothing to list, as of one that has nothing. */
export async function requireTenant(store: Store, tenantId: string | undefined): Promise<void> {
  if (tenantId === undefined || (await hasTenant(store, tenantId))) return;
  throw new CommandFailed(`--tenant: there is no tenant ${tenantId}`);
}
