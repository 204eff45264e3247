import type { Random } from "../simulation/random.js";
import { type AnyDocument, type ApiAnswer, ApiClient } from "../support/api-client.js";

/** Between two sends of one key. A real client waits longer; here trouble is wanted. */
const LEAST_PAUSE_MS = 30;
const MOST_PAUSE_MS = 400;
/** Longer than any wait that is asked for: nothing here stops an API for good. */
const CLIENT_TIMEOUT_MS = 45_000;
const MOST_REPLAYS = 20;
const PREFERENCES = ["wait=1", "wait=3", "wait=8", "respond-async", null] as const;

/** Answers that say "not now": the same key is sent again. */
const PASSING: ReadonlySet<string> = new Set([
  "idempotency_key_in_progress",
  "operation_in_progress",
  "service_unavailable",
  "provider_unavailable",
  "request_timeout",
]);
/** Refusals that are not stored: asked again, the answer is made anew. */
const NOT_STORED: ReadonlySet<string> = new Set(["merchant_order_id_taken"]);

/** One keyed request, sent until it is answered for good. */
export interface Asked {
  readonly key: string;
  readonly path: string;
  readonly body: object;
  /** What its answer may be: `201 succeeded`, `402 payment_declined`, … */
  readonly allowed: readonly string[];
  answer: ApiAnswer | null;
  /** What is waited for is before a person: there is no final answer. */
  isUnderReview: boolean;
  sends: number;
}

/** Status, and the status of the document or the code of the problem. */
function outcomeOf({ status, json }: ApiAnswer): string {
  return `${status} ${json.code ?? json.status ?? "?"}`;
}

/** What all callers have seen. */
export class Seen {
  readonly asked: Asked[] = [];
  /** How often each passing answer came, by code. */
  readonly refusals = new Map<string, number>();
  /** Requests without an answer. */
  broken = 0;
  readonly faults: string[] = [];
  /** How many requests have their final answer. */
  answered = 0;

  count(what: string): void {
    this.refusals.set(what, (this.refusals.get(what) ?? 0) + 1);
  }
}

/** A caller of the API as docs/clients.md has it, only less patient. */
export class Caller {
  #ending = false;

  constructor(
    private readonly urls: () => readonly string[],
    private readonly secret: string,
    readonly random: Random,
    private readonly seen: Seen,
  ) {}

  /** No request is sent again from now on. */
  giveUp(): void {
    this.#ending = true;
  }

  /** Sends until the answer is final; null: given up, or before a person. */
  async ask(
    path: string,
    body: object,
    allowed: readonly string[],
    key = this.newKey(),
  ): Promise<AnyDocument | null> {
    const asked: Asked = { key, path, body, allowed, answer: null, isUnderReview: false, sends: 0 };
    this.seen.asked.push(asked);
    while (!this.#ending) {
      const answer = await this.send(asked);
      if (answer !== null && this.#isFinal(asked, answer)) {
        asked.answer = answer;
        this.seen.answered += 1;
        if (!allowed.includes(outcomeOf(answer)))
          this.seen.faults.push(`${path} ${key}: ${outcomeOf(answer)}, wanted ${allowed.join(" or ")}`);
        return answer.json;
      }
      if (asked.isUnderReview) return null;
      await this.pause(LEAST_PAUSE_MS, MOST_PAUSE_MS);
    }
    return null;
  }

  /** One send, to either API. Null: it was not answered. */
  async send({ path, body, key }: Asked): Promise<ApiAnswer | null> {
    const prefer = this.random.pick(PREFERENCES);
    const client = new ApiClient(this.random.pick(this.urls()), this.secret);
    try {
      return await client.request("POST", path, {
        body: JSON.stringify(body),
        headers: {
          "Content-Type": "application/json",
          "Idempotency-Key": key,
          ...(prefer === null ? {} : { Prefer: prefer }),
        },
        signal: AbortSignal.timeout(CLIENT_TIMEOUT_MS),
      });
    } catch {
      this.seen.broken += 1;
      return null;
    }
  }

  newKey(): string {
    return Array.from({ length: 4 }, () => this.random.whole(0, 0xffff).toString(16).padStart(4, "0")).join(
      "",
    );
  }

  async pause(leastMs: number, mostMs: number): Promise<void> {
    const ms = this.random.duration(leastMs, mostMs);
    await new Promise((resolve) => setTimeout(resolve, ms));
  }

  #isFinal(asked: Asked, answer: ApiAnswer): boolean {
    asked.sends += 1;
    const { status, json } = answer;
    const refund = json["refund"] as { status?: string } | undefined;
    const shown = json.code === undefined ? json.status : (refund ?? json.payment)?.status;
    asked.isUnderReview = (status === 202 || status === 409) && shown === "needs_review";
    if (status === 202) return false;
    if (PASSING.has(json.code ?? "")) {
      this.seen.count(json.code ?? "");
      return false;
    }
    if (status >= 500) {
      this.seen.faults.push(`${asked.path} ${asked.key}: ${status} ${answer.text}`);
      return false;
    }
    return true;
  }
}

/** No answer, or one that says to come again. */
function hasPassed(answer: ApiAnswer | null): boolean {
  return answer === null || answer.json.code === "service_unavailable";
}

/** Sends the request once more, at the very end: what is wrong with the answer, or null. */
export async function faultOfReplay(caller: Caller, asked: Asked): Promise<string | null> {
  const { path, key, answer } = asked;
  const what = `${path} ${key}`;
  let again: ApiAnswer | null = null;
  // A connection that was idle too long may break under the request; each of an API's to the database, once.
  for (let sends = 0; hasPassed(again) && sends < MOST_REPLAYS; sends += 1) {
    if (sends > 0) await caller.pause(LEAST_PAUSE_MS, MOST_PAUSE_MS);
    again = await caller.send(asked);
  }
  if (again === null) return `${what}: no answer at the end`;
  if (asked.isUnderReview) return null;
  if (answer === null) return `${what}: never answered for good; at the end ${outcomeOf(again)}`;
  if (outcomeOf(again) !== outcomeOf(answer))
    return `${what}: ${outcomeOf(answer)}, and at the end ${outcomeOf(again)}`;
  if (NOT_STORED.has(answer.json.code ?? "")) return null;
  if (again.headers.get("Idempotent-Replayed") !== "true") return `${what}: the end's answer is no replay`;
  return again.text === answer.text
    ? null
    : `${what}: other bytes at the end: ${answer.text} and ${again.text}`;
}
