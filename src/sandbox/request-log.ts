import type { Params } from "./form.js";
import type { CallName } from "./operation.js";

/** One request as the sandbox received it. */
export interface LoggedRequest {
  /** Order of receipt, from 1. */
  readonly sequence: number;
  readonly request_id: string;
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /** Null for a path the sandbox does not serve. */
  readonly call: CallName | null;
  /** The id in the path; for a create, the id of what it made or found, once known. */
  object_id: string | null;
  readonly parameters: Params;
  readonly idempotency_key: string | null;
  readonly stripe_version: string | null;
  account: string | null;
  livemode: boolean | null;
  /** RFC 3339, on the sandbox's clock. */
  readonly received_at: string;
  /** Order in which requests entered authentication, key layer and state guard; null while (or if) it never did. */
  arrival: number | null;
  /** The rule that was applied, and what it did. */
  fault: { readonly rule_id: string; readonly type: string; readonly effect: string } | null;
  /** The status that was sent; null while nothing was, and for ever where the connection was cut. */
  status: number | null;
  /** What the request came to, whatever was sent; null until it is known. */
  result_status: number | null;
  error_code: string | null;
  replayed: boolean;
  /**
   * `applied`: this request changed the state (a decline does). `pending`: it may still. `none`: it did not, be it a
   * read, a replay, a refusal, or lost.
   */
  effect: "none" | "pending" | "applied";
  /** The caller closed the connection before it was answered. */
  abandoned: boolean;
}

export interface RequestFilter {
  readonly call?: string;
  readonly method?: string;
  readonly path?: string;
  readonly object_id?: string;
  readonly idempotency_key?: string;
  readonly account?: string;
  readonly request_id?: string;
  readonly status?: number;
  readonly replayed?: boolean;
  readonly abandoned?: boolean;
  readonly effect?: LoggedRequest["effect"];
  readonly after_sequence?: number;
}

/** The last `limit` requests, in order of receipt. */
export class RequestLog {
  readonly #limit: number;
  #entries: LoggedRequest[] = [];
  #sequence = 0;
  #arrivals = 0;
  readonly #watchers = new Set<() => void>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  nextSequence(): number {
    return ++this.#sequence;
  }

  add(entry: LoggedRequest): void {
    this.#entries.push(entry);
    // Cut in blocks: dropping one entry per request would copy the whole array each time.
    if (this.#entries.length > this.#limit * 1.25)
      this.#entries.splice(0, this.#entries.length - this.#limit);
    this.changed();
  }

  arrived(entry: LoggedRequest): void {
    entry.arrival = ++this.#arrivals;
  }

  list(filter: RequestFilter = {}): LoggedRequest[] {
    const wanted = Object.entries(filter).filter(([, value]) => value !== undefined);
    if (wanted.length === 0) return [...this.#entries];
    return this.#entries.filter((entry) =>
      wanted.every(([name, value]) =>
        name === "after_sequence"
          ? entry.sequence > Number(value)
          : entry[name as keyof LoggedRequest] === value,
      ),
    );
  }

  clear(): void {
    this.#entries = [];
  }

  /** Called whenever an entry is added or its result becomes known. */
  changed(): void {
    for (const watcher of this.#watchers) watcher();
  }

  /** Resolves true as soon as `holds()` is, looked at after every change; false when `timeoutMs` is over. */
  waitUntil(holds: () => boolean, timeoutMs: number): Promise<boolean> {
    if (holds()) return Promise.resolve(true);
    return new Promise((resolve) => {
      const end = (result: boolean): void => {
        clearTimeout(timer);
        this.#watchers.delete(watcher);
        resolve(result);
      };
      const watcher = (): void => {
        if (holds()) end(true);
      };
      const timer = setTimeout(() => end(false), timeoutMs);
      this.#watchers.add(watcher);
    });
  }
}
