import postgres from "postgres";
import { afterAll, beforeAll } from "vitest";
import type { PaymentDocument } from "./api-client.js";
import { made, NEEDS_CUSTOMER, objectIdOf } from "./merchant.js";
import type { Pair } from "./pair.js";
import { EVENTFUL } from "./stripe-sender.js";
import { until } from "./until.js";

/** Settings with which what waits for its customer or its bank is asked about when an event says so, and not before. */
export const TOLD_ONLY = {
  ...EVENTFUL,
  PROVIDER_TIMEOUT_MS: "10000",
  ATTEMPT_LEASE_MS: "20000",
  FOLLOW_FIRST_MS: "600000",
  FOLLOW_MOST_MS: "600000",
} as const;

/** An event as the provider has it, to be told as it is or changed. */
export interface Told {
  readonly event: Readonly<Record<string, unknown>>;
  /** Its text, with other members of the event and of its object. */
  with(changes: object, objectChanges?: object): string;
}

/** What the provider tells a pair, and the rows that are kept of it. */
export class Inbox {
  #admin: postgres.Sql | null = null;

  constructor(private readonly pair: Pair) {}

  open(): void {
    this.#admin = postgres(this.pair.system.adminUrl ?? "", { max: 2, onnotice: () => undefined });
  }

  async close(): Promise<void> {
    await this.#admin?.end();
  }

  /** A superuser's connection to the database of the pair. */
  get sql(): postgres.Sql {
    if (this.#admin === null) throw new Error("not open yet: use it in a test or in a hook");
    return this.#admin;
  }

  /** A payment whose customer has paid, of which nobody here has heard yet. */
  async untold(): Promise<PaymentDocument> {
    const payment = await made(this.pair.client, NEEDS_CUSTOMER);
    await this.pair.control.authenticate(objectIdOf(payment), "complete");
    return payment;
  }

  async eventOf(payment: PaymentDocument, type = "payment_intent.succeeded"): Promise<Told> {
    const [event] = await this.pair.control.listEvents({ type, object_id: objectIdOf(payment) });
    if (event === undefined) throw new Error(`no ${type} of ${payment.id}`);
    const { object } = event.data;
    return {
      event: { ...event },
      with: (changes, objectChanges = {}) =>
        JSON.stringify({ ...event, ...changes, data: { object: { ...object, ...objectChanges } } }),
    };
  }

  /** How many are kept, whatever became of them. */
  kept(): Promise<number> {
    return this.#count(this.sql`select count(*)::int as count from provider_events`);
  }

  /** How many are to be applied. */
  waiting(): Promise<number> {
    return this.#count(this.sql`select count(*)::int as count from provider_events where due_at is not null`);
  }

  async untilNothingWaits(): Promise<void> {
    await until(
      "an inbox without work",
      () => this.waiting(),
      (count) => count === 0,
    );
  }

  async #count(query: Promise<postgres.RowList<postgres.Row[]>>): Promise<number> {
    return Number((await query)[0]?.["count"]);
  }
}

/** For a test file with a pair: its inbox, open while the tests run. */
export function useInbox(pair: Pair): Inbox {
  const inbox = new Inbox(pair);
  beforeAll(() => inbox.open());
  afterAll(() => inbox.close());
  return inbox;
}
