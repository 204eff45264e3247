import type { Clock } from "../lib/clock.js";
import { type Database, withDatabase } from "../store/db.js";
import { type ApiKey, readApiKey } from "../store/tenants.js";

/** How long a process believes a key without looking again: the bound on a revocation taking effect. */
const BELIEVED_MS = 1_000;
/** Cached keys of one process; beyond it the oldest go. */
const MOST_CACHED = 10_000;

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
