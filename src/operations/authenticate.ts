import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { Caller, Deps } from "./deps.js";

const SECRET_SHAPE = /^pawl_(test|live)_([0-9a-f]{32})_([0-9a-f]{32})_([A-Za-z0-9_-]{43})$/;

/**
 * `pawl_test_<tenant>_<key>_<256 random bits>`: the secret names its tenant and key, so that finding it is a look-up
 * by primary key inside one tenant.
 */
export function newSecret(livemode: boolean, tenantId: string, keyId: string): string {
  const bare = (id: string) => id.slice(id.indexOf("_") + 1);
  const random = randomBytes(32).toString("base64url");
  return `pawl_${livemode ? "live" : "test"}_${bare(tenantId)}_${bare(keyId)}_${random}`;
}

export function hashSecret(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

/** Whose key this is; null: no such key, a revoked one, or one of the other mode. */
export async function authenticate(deps: Deps, bearerSecret: string): Promise<Caller | null> {
  const shape = SECRET_SHAPE.exec(bearerSecret);
  if (shape === null) return null;
  const key = await deps.apiKeys.read(`ten_${shape[2] ?? ""}`, `key_${shape[3] ?? ""}`);
  if (key === null || key.revokedAt !== null) return null;
  const matches = timingSafeEqual(Buffer.from(hashSecret(bearerSecret)), Buffer.from(key.secretHash));
  if (!matches || key.livemode !== deps.provider.livemode) return null;
  return { tenantId: key.tenantId, keyId: key.id, scopes: key.scopes, livemode: key.livemode };
}
