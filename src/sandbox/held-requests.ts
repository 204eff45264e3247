import type { Exchange } from "./exchange.js";
import type { FaultRule } from "./fault-rules.js";
import { randomText } from "./ids.js";
import type { CallName } from "./operation.js";
import type { RequestLog } from "./request-log.js";

/** `in_network`: not arrived. `executing`: arrived, effect to come. `answer`: only the answer is held back. */
export type HeldStage = "in_network" | "executing" | "answer";

export interface HeldRequest {
  readonly id: string;
  readonly rule_id: string;
  readonly request_id: string;
  readonly call: CallName | null;
  readonly idempotency_key: string | null;
  readonly object_id: string | null;
  readonly stage: HeldStage;
  /** Null: only a release ends it. */
  readonly after_ms: number | null;
}

/** Which held requests; nothing given: all. */
export interface HeldSelector {
  readonly id?: string;
  readonly rule_id?: string;
  readonly request_id?: string;
  readonly call?: string;
  readonly idempotency_key?: string;
  readonly object_id?: string;
  readonly stage?: HeldStage;
}

interface Holding {
  readonly shown: HeldRequest;
  readonly proceed: () => void;
  readonly drop: () => void;
  readonly timer: NodeJS.Timeout | null;
}

export interface HoldOptions {
  readonly stage: HeldStage;
  readonly afterMs: number | null;
  readonly proceed: () => void;
  readonly drop: () => void;
}

/** Requests under way that wait for a time or for a release, oldest first. */
export class HeldRequests {
  readonly #holdings = new Map<string, Holding>();
  readonly #log: RequestLog;

  constructor(log: RequestLog) {
    this.#log = log;
  }

  hold(exchange: Exchange, rule: FaultRule, options: HoldOptions): void {
    const id = `held_${randomText(8)}`;
    const end = (): void => {
      this.#holdings.delete(id);
      options.proceed();
      this.#log.changed();
    };
    const timer = options.afterMs === null ? null : setTimeout(end, options.afterMs);
    const shown: HeldRequest = {
      id,
      rule_id: rule.id,
      request_id: exchange.requestId,
      call: exchange.operation?.name ?? null,
      idempotency_key: exchange.idempotencyKey,
      object_id: exchange.objectId,
      stage: options.stage,
      after_ms: options.afterMs,
    };
    this.#holdings.set(id, { shown, proceed: options.proceed, drop: options.drop, timer });
    this.#log.changed();
  }

  list(selector: HeldSelector = {}): HeldRequest[] {
    const wanted = Object.entries(selector).filter(([, value]) => value !== undefined);
    return [...this.#holdings.values()]
      .map((holding) => holding.shown)
      .filter((shown) => wanted.every(([name, value]) => shown[name as keyof HeldRequest] === value));
  }

  /**
   * Lets them go on, in the order they were held; when it returns, their effects are applied. `drop` loses them instead:
   * a request in the network never arrives, one that executes dies without a result, an answer is never sent.
   */
  release(selector: HeldSelector, outcome: "proceed" | "drop"): HeldRequest[] {
    const released = this.list(selector);
    for (const { id } of released) {
      const holding = this.#holdings.get(id);
      if (holding === undefined) continue;
      this.#holdings.delete(id);
      if (holding.timer !== null) clearTimeout(holding.timer);
      if (outcome === "drop") holding.drop();
      else holding.proceed();
    }
    this.#log.changed();
    return released;
  }
}
