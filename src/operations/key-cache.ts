import type { Clock } from "../lib/clock.js";
import type { ApiKey } from "../store/tenants.js";

/** How long a process believes a key without looking again: the bound on a revocation taking effect. */
const BELIEVED_MS = 1_000;
/** Cached keys of one process; beyond it the oldest go. */
const MOST_CACHED = 10_000;

type LookUp = (tenantId: string, keyId: string) => Promise<ApiKey | null>;

interface Entry {
  /** Requests that come while the look-up runs share it. */
  readonly key: Promise<ApiKey | null>;
  readonly until: number;
}

/** Keys that this process has looked up, each believed for a second. */
export class KeyCache {
  readonly #entries = new Map<string, Entry>();

  constructor(
    private readonly lookUp: LookUp,
    private readonly clock: Clock,
  ) {}

  async read(tenantId: string, keyId: string): Promise<ApiKey | null> {
    const name = `${tenantId} ${keyId}`;
    const cached = this.#entries.get(name);
    if (cached !== undefined && cached.until > this.clock.monotonicMs()) return cached.key;
    const entry: Entry = {
      key: this.lookUp(tenantId, keyId),
      until: this.clock.monotonicMs() + BELIEVED_MS,
    };
    this.#entries.delete(name);
    this.#dropOldest();
    this.#entries.set(name, entry);
    // Neither a failure nor an absence is kept: a key that has just been made works at once.
    const key = await entry.key.catch((error: unknown) => {
      this.#forget(name, entry);
      throw error;
    });
    if (key === null) this.#forget(name, entry);
    return key;
  }

  #forget(name: string, entry: Entry): void {
    if (this.#entries.get(name) === entry) this.#entries.delete(name);
  }

  #dropOldest(): void {
    if (this.#entries.size < MOST_CACHED) return;
    const [oldest] = this.#entries.keys();
    if (oldest !== undefined) this.#entries.delete(oldest);
  }
}
