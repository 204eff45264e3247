import { expect } from "vitest";
import type { LoggedRequest, SandboxControl } from "../../src/sandbox/index.js";
import type { ApiClient } from "./api-client.js";
import { untilEnded } from "./system.js";

const SEND_CALLS = ["payment_intents.create", "payment_intents.confirm", "payment_intents.cancel"];
const QUESTION_CALLS = ["payment_intents.retrieve", "payment_intents.list", "payment_intents.search"];
/** Refused before execution: such a send leaves nothing unknown. */
const REFUSALS = [401, 403, 429];

/**
 * The checks that must hold after every case: each payment has ended, ours is in the state of the provider's object,
 * at most one object was ever charged for it, and what is charged is what was asked for.
 */
export async function expectSettled(
  client: ApiClient,
  control: SandboxControl,
  ids: readonly string[],
): Promise<void> {
  for (const id of ids) {
    const payment = await untilEnded(client, id);
    const attempts = new Set((await client.timeline(id)).flatMap((entry) => entry.attempt_id ?? []));
    expect(attempts.size, `attempts of ${id}`).toBe(1);
    const [attempt = ""] = attempts;
    const objects = await control.listPaymentIntents({ metadata: { payment_attempt_id: attempt } });
    const charged = objects.filter((object) => object.successful_charges > 0);
    const moved = payment.status === "succeeded" || payment.status === "authorized";
    expect(charged, `charged objects of ${id}`).toHaveLength(moved ? 1 : 0);
    if (!moved) continue;
    const [object] = charged;
    expect(object?.successful_charges).toBe(1);
    expect(object?.payment_intent.id).toBe(payment.provider_payment_id);
    expect(object?.payment_intent.amount).toBe(payment.amount);
    expect(object?.payment_intent.status).toBe(
      payment.status === "succeeded" ? "succeeded" : "requires_capture",
    );
    // Whatever else a lost create left cannot be paid by anybody without being noticed.
    const others = objects.filter((other) => other !== object);
    for (const other of others) expect(other.successful_charges).toBe(0);
  }
}

/** Sends of one provider key that followed a send of unknown outcome without an answered question between them. */
export function blindSends(log: readonly LoggedRequest[]): LoggedRequest[] {
  const blind: LoggedRequest[] = [];
  const unknown = new Set<string>();
  for (const request of log) {
    const { call, idempotency_key: key } = request;
    // Any answered look-up will do here: a case has one payment under way at a time.
    if (QUESTION_CALLS.includes(call ?? "") && request.status === 200) unknown.clear();
    if (!SEND_CALLS.includes(call ?? "") || key === null) continue;
    if (unknown.has(key)) blind.push(request);
    if (request.status === null || !REFUSALS.includes(request.status)) unknown.add(key);
  }
  return blind;
}
