import { type ApiAnswer, type ApiClient, newKey, VISA } from "./api-client.js";
import { until } from "./until.js";

export interface Load {
  /** How many payments have been made so far. */
  paid(): number;
  /** Resolves when `count` more payments have been made. */
  more(count: number): Promise<void>;
  /** Ends when each caller has the final answer of its last payment. Resolves to every payment's id. */
  finish(): Promise<readonly string[]>;
  /** Every answer other than a payment: what callers saw of trouble. */
  readonly refusals: readonly ApiAnswer[];
  /** Requests that got no answer at all. */
  readonly broken: readonly unknown[];
}

const PAUSE_MS = 50;

/** Callers that make one payment after another, each sent again under its key until it is answered for good. */
export function startLoad(clients: readonly ApiClient[], callers: number): Load {
  const ids: string[] = [];
  const refusals: ApiAnswer[] = [];
  const broken: unknown[] = [];
  let ending = false;

  async function payOnce(client: ApiClient): Promise<void> {
    const key = newKey();
    for (;;) {
      try {
        const answer = await client.pay(VISA, { key });
        if (answer.status === 201) {
          ids.push(answer.json.id ?? "");
          return;
        }
        refusals.push(answer);
      } catch (error) {
        broken.push(error);
      }
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }

  const calling = Array.from({ length: callers }, async (_, at) => {
    const client = clients[at % clients.length];
    if (client === undefined) throw new Error("no client");
    while (!ending) await payOnce(client);
  });

  return {
    paid: () => ids.length,
    more: async (count) => {
      const goal = ids.length + count;
      await until(
        `${count} more payments`,
        () => ids.length,
        (paid) => paid >= goal,
      );
    },
    finish: async () => {
      ending = true;
      await Promise.all(calling);
      return ids;
    },
    refusals,
    broken,
  };
}
