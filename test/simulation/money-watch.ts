import { attemptIdOf } from "../../src/operations/attempt-id.js";
import { nameOf, type PaymentPlan } from "./plans.js";
import type { Intent } from "./provider-objects.js";
import { INSTALLATION_SECRET } from "./simulated-process.js";
import type { Surroundings } from "./surroundings.js";

/** Runs of one key that a seed may come to: each follows a proven outage of the provider. */
const MOST_RUNS = 60;

/** At every moment: money of one intent alone for a key, and for an order. */
export class MoneyWatch {
  readonly #world: Surroundings;
  readonly #planOfAttempt = new Map<string, PaymentPlan>();
  readonly #mayDiffer = new Set<string>();

  constructor(world: Surroundings, plans: readonly PaymentPlan[]) {
    this.#world = world;
    for (const plan of plans) {
      for (let run = 1; run <= MOST_RUNS; run += 1) this.#expect(plan, run);
    }
  }

  look(intent: Intent): void {
    const world = this.#world;
    if (intent.charges > 1) world.fault(`${intent.id} was charged ${intent.charges} times`);
    if (!hasMoney(intent)) return;
    const plan = this.#planOfAttempt.get(intent.attemptId);
    if (plan === undefined) return world.fault(`${intent.id} was made for nobody: ${intent.attemptId}`);
    for (const other of world.model.intents.values()) {
      if (other === intent || !hasMoney(other)) continue;
      const its = this.#planOfAttempt.get(other.attemptId);
      if (its === undefined || its.tenantId !== plan.tenantId) continue;
      const pair = `${intent.id} and ${other.id} both hold money`;
      if (its.key === plan.key)
        world.fault(`${pair} of ${nameOf(plan.tenantId, "payments.create", plan.key)}`);
      else if (its.orderId !== null && its.orderId === plan.orderId && !this.#isHoldLost(intent, other))
        world.fault(`${pair} of ${plan.orderId}`);
    }
  }

  /**
   * Under whose key another request may be sent than before: by somebody who misuses it, or since what it asks for is
   * all that is left.
   */
  mayDiffer(attemptId: string): boolean {
    return this.#mayDiffer.has(attemptId);
  }

  #expect(plan: PaymentPlan, run: number): void {
    const { tenantId } = plan;
    const idOf = (operation: string, key: string) =>
      attemptIdOf(INSTALLATION_SECRET, { tenantId, operation, key }, run);
    const chargeId = idOf("payments.create", plan.key);
    this.#planOfAttempt.set(chargeId, plan);
    if (plan.isMisused) this.#mayDiffer.add(chargeId);
    for (const { key, effect } of plan.effects) {
      if (effect.kind === "refund" && effect.amount === null)
        this.#mayDiffer.add(idOf("refunds.create", key));
    }
  }

  /** An order id's hold is lost with the row of its payment (docs/recovery.md). */
  #isHoldLost(one: Intent, other: Intent): boolean {
    const lost = this.#world.restore?.loss?.attempts;
    return lost !== undefined && (lost.has(one.attemptId) || lost.has(other.attemptId));
  }
}

function hasMoney(intent: Intent): boolean {
  return intent.captured > 0 || intent.capturable > 0;
}
