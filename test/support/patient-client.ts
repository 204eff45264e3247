import type { Deps } from "../../src/operations/deps.js";
import type { KeyedAnswer } from "../../src/operations/keyed-request.js";
import { type Harness, type PayOptions, pay } from "./harness.js";

/** What docs/clients.md tells a client to repeat with the same key. */
const REPEATED = new Set(["idempotency_key_in_progress", "service_unavailable", "provider_unavailable"]);
const MOST_TRIES = 200;

/**
 * A client as the guidance has it: the same key and request, through whatever process answers, until the answer is
 * final. Throws what is no reason to repeat, and after 200 tries.
 */
export async function payPatiently(
  harness: Harness,
  processes: readonly Deps[],
  request: PayOptions & { readonly key: string },
): Promise<KeyedAnswer & { type: "final" }> {
  for (let tries = 0; tries < MOST_TRIES; tries += 1) {
    const deps = processes[tries % processes.length] as Deps;
    try {
      const answer = await pay(harness, { waitMs: 200, explicit: true, ...request, deps });
      if (answer.type === "final") return answer;
    } catch (error) {
      if (!REPEATED.has(String((error as { code?: string }).code))) throw error;
      await deps.clock.sleep(20);
    }
  }
  throw new Error(`no final answer for ${request.key} after ${MOST_TRIES} tries`);
}
