import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { Clock } from "../lib/clock.js";
import { type Database, withDatabase } from "../store/db.js";
import { type ApiKey, readApiKey } from "../store/tenants.js";
import type { Caller, Deps } from "./deps.js";

/** How long a process believes a key without looking again: the bound on a revocation taking effect. */
const BELIEVED_MS = 1_000;
/** Cached keys of one process; beyond it the oldest go. */
const MOST_CACHED = 10_000;

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

/** Keys that this process has looked up, each believed for a second. */
export class KeyCache {
  readonly #entries = new Map<string, { readonly key: ApiKey; readonly until: number }>();

  constructor(
    private readonly db: Database,
    private readonly clock: Clock,
  ) {}

  async read(tenantId: string, keyId: string): Promise<ApiKey | null> {
    const name = `${tenantId} ${keyId}`;
    const cached = this.#entries.get(name);
    if (cached !== undefined && cached.until > this.clock.monotonicMs()) return cached.key;
    const until = this.clock.monotonicMs() + BELIEVED_MS;
    const key = await withDatabase(() => readApiKey(this.db, tenantId, keyId));
    this.#entries.delete(name);
    if (key === null) return null;
    if (this.#entries.size >= MOST_CACHED) {
      const [oldest] = this.#entries.keys();
      if (oldest !== undefined) this.#entries.delete(oldest);
    }
    this.#entries.set(name, { key, until });
    return key;
  }
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
