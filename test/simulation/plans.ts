import type { EffectRequest } from "../../src/domain/admit-effect.js";
import type { Card } from "./provider-objects.js";
import type { Random } from "./random.js";

/** What merchants mean to do, drawn before anything happens. */

export const TENANTS = ["ten_first", "ten_second"] as const;

export interface PaymentPlan {
  readonly tenantId: string;
  readonly key: string;
  readonly amount: number;
  readonly card: Card;
  readonly manual: boolean;
  readonly orderId: string | null;
  readonly startsAtMs: number;
  /** How many clients send the same request under the same key. */
  readonly clients: number;
  /** One more sends another request under the same key. */
  readonly isMisused: boolean;
  readonly effects: readonly EffectPlan[];
}

export interface EffectPlan {
  readonly key: string;
  readonly effect: EffectRequest;
  /** After the payment's state allows it, as far as the client knows. */
  readonly afterMs: number;
  readonly clients: number;
}

export function drawPlans(random: Random, count: number): PaymentPlan[] {
  const plans: PaymentPlan[] = [];
  for (let at = 1; plans.length < count; at += 1) {
    const plan = drawPayment(random, `key-${String(at)}`);
    plans.push(plan);
    // Another client wants the same order paid, under a key of its own and perhaps with another card.
    if (plan.orderId !== null && random.chance(0.35)) {
      const rival = drawPayment(random, `key-${String(at)}-rival`);
      plans.push({
        ...rival,
        tenantId: plan.tenantId,
        orderId: plan.orderId,
        startsAtMs: plan.startsAtMs + random.duration(1, 120_000),
      });
    }
  }
  return plans;
}

function drawPayment(random: Random, key: string): PaymentPlan {
  const amount = random.whole(100, 90_000);
  const manual = random.chance(0.4);
  const card = random.weighted<Card>({
    pm_pays: 58,
    pm_declines: 12,
    pm_asks_customer: 18,
    pm_takes_time: 12,
  });
  return {
    tenantId: random.pick(TENANTS),
    key,
    amount,
    card,
    manual,
    orderId: random.chance(0.6) ? `order-${key}` : null,
    startsAtMs: random.whole(0, 60_000),
    clients: random.chance(0.6) ? 1 : random.whole(2, 3),
    isMisused: random.chance(0.06),
    effects: drawEffects(random, key, amount, manual),
  };
}

type Step = "capture" | "capture_part" | "cancel" | "refund";

const MANUAL_STEPS: Readonly<Record<string, readonly Step[]>> = {
  all: ["capture"],
  part: ["capture_part"],
  twice: ["capture", "capture_part"],
  cancel: ["cancel"],
  both: ["capture", "cancel"],
  nothing: [],
};

function drawEffects(random: Random, key: string, amount: number, manual: boolean): EffectPlan[] {
  const steps: Step[] = [];
  if (manual) {
    const way = random.weighted({ all: 4, part: 3, twice: 2, cancel: 2, both: 2, nothing: 2 });
    steps.push(...(MANUAL_STEPS[way] ?? []));
  } else if (random.chance(0.15)) steps.push("cancel");
  const refunds = random.chance(0.65) ? random.whole(1, 4) : 0;
  for (let at = 0; at < refunds; at += 1) steps.push("refund");
  return steps.map((step, at) => ({
    key: `${key}-effect-${String(at + 1)}`,
    effect: effectOf(random, step, amount),
    afterMs: random.duration(1, 60_000),
    clients: random.chance(0.2) ? 2 : 1,
  }));
}

function effectOf(random: Random, step: Step, amount: number): EffectRequest {
  switch (step) {
    case "capture":
      return { kind: "capture", amount: null };
    case "capture_part":
      return { kind: "capture", amount: random.whole(1, amount) };
    case "cancel":
      return { kind: "cancel", reason: null };
    case "refund": {
      // All that is left, or some: in sum often more than there is.
      const part = random.chance(0.2) ? null : random.whole(1, Math.ceil(amount * 0.7));
      return { kind: "refund", amount: part, reason: null, metadata: {} };
    }
  }
}

/** What a key is known by. */
export function nameOf(tenantId: string, operation: string, key: string): string {
  return `${tenantId} ${operation} ${key}`;
}
