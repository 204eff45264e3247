import type { ProviderNews } from "./provider-model.js";
import type { Intent, SimulatedDispute, SimulatedRefund } from "./provider-objects.js";
import type { Surroundings } from "./surroundings.js";

/** How often somebody does something that nobody at Pawl asked for. */
export interface OutsideHabits {
  readonly dashboard: number;
  readonly secondCards: number;
  readonly disputes: number;
  readonly lateRefundFailures: number;
}

/** Customers, their banks, and people at the provider's dashboard. */
export class Outside {
  readonly #world: Surroundings;
  readonly #habits: OutsideHabits;

  constructor(world: Surroundings, habits: OutsideHabits) {
    this.#world = world;
    this.#habits = habits;
  }

  hears({ type, intent, objectId }: ProviderNews): void {
    switch (type) {
      case "payment_intent.requires_action":
        return this.#customer(intent);
      case "payment_intent.processing":
        return this.#bank(intent);
      case "payment_intent.payment_failed":
        return this.#secondCard(intent);
      case "payment_intent.amount_capturable_updated":
        this.#lapse(intent);
        return this.#dashboard(intent, "held");
      case "payment_intent.succeeded":
        this.#dispute(intent);
        return this.#dashboard(intent, "paid");
      case "refund.created":
        return this.#refund(this.#world.model.refunds.get(objectId));
      default:
        return;
    }
  }

  get #random() {
    return this.#world.random.world;
  }

  /** Does it later, if the object is then where it must be and nobody works on it. */
  #later(
    leastMs: number,
    mostMs: number,
    intent: Intent,
    status: Intent["status"],
    who: string,
    what: () => void,
  ): void {
    this.#world.scheduler.plan(this.#random.duration(leastMs, mostMs), null, () => {
      if (intent.status !== status || intent.lockedBy !== null) return;
      this.#world.scheduler.tell(`${who}: ${intent.id}`);
      what();
    });
  }

  /** Some never come back. */
  #customer(intent: Intent): void {
    const { model } = this.#world;
    const does = this.#random.weighted({ pays: 6, fails: 2, leaves: 2 });
    if (does === "leaves") return;
    const act = () => (does === "pays" ? model.pay(intent) : model.decline(intent));
    this.#later(2_000, 1_800_000, intent, "requires_action", `the customer ${does}`, act);
  }

  #bank(intent: Intent): void {
    const { model } = this.#world;
    const says = this.#random.chance(0.75) ? "yes" : "no";
    const act = () => (says === "yes" ? model.pay(intent) : model.decline(intent));
    this.#later(1_000, 1_800_000, intent, "processing", `the bank says ${says}`, act);
  }

  /** Whoever holds its client secret can pay a declined object with another card. */
  #secondCard(intent: Intent): void {
    if (!this.#random.chance(this.#habits.secondCards)) return;
    const act = () => this.#world.model.pay(intent);
    this.#later(50, 30_000, intent, "requires_payment_method", "the customer pays with another card", act);
  }

  #lapse(intent: Intent): void {
    const { scheduler, model } = this.#world;
    const atMs = intent.authorizedUntilMs;
    if (atMs === null) return;
    scheduler.plan(Math.max(0, atMs - scheduler.nowMs), null, () => {
      if (intent.status !== "requires_capture") return;
      if (intent.lockedBy !== null) return this.#lapse(intent);
      scheduler.tell(`the authorisation lapses: ${intent.id}`);
      model.cancel(intent, true);
    });
  }

  #dashboard(intent: Intent, where: "held" | "paid"): void {
    if (!this.#random.chance(this.#habits.dashboard)) return;
    const { model } = this.#world;
    if (where === "held") {
      const amount = this.#random.chance(0.5) ? intent.amount : this.#random.whole(1, intent.amount);
      const captures = this.#random.chance(0.6);
      const act = () => (captures ? model.capture(intent, amount) : model.cancel(intent));
      const what = captures ? `the dashboard captures ${String(amount)}` : "the dashboard cancels";
      return this.#later(100, 600_000, intent, "requires_capture", what, act);
    }
    const amount = this.#random.whole(1, intent.captured);
    this.#later(100, 600_000, intent, "succeeded", `the dashboard refunds ${String(amount)}`, () => {
      if (model.refundable(intent) < amount || model.isDisputed(intent)) return;
      const status = this.#random.chance(0.3) ? "pending" : "succeeded";
      model.refund(intent, { amount, attemptId: null, tenantId: null, status });
    });
  }

  #refund(refund: SimulatedRefund | undefined): void {
    if (refund === undefined) return;
    const { scheduler, model } = this.#world;
    const fails = this.#random.chance(refund.status === "pending" ? 0.3 : this.#habits.lateRefundFailures);
    if (refund.status === "succeeded" && !fails) return;
    scheduler.plan(this.#random.duration(1_000, 7_200_000), null, () => {
      scheduler.tell(`the bank ${fails ? "sends back" : "takes"}: ${refund.id} of ${refund.intentId}`);
      model.endRefund(refund, fails ? "failed" : "succeeded");
    });
  }

  #dispute(intent: Intent): void {
    if (!this.#random.chance(this.#habits.disputes)) return;
    const { model } = this.#world;
    this.#later(5_000, 3_600_000, intent, "succeeded", "the holder disputes", () => {
      const left = model.refundable(intent);
      if (left <= 0) return;
      this.#follow(model.openDispute(intent, this.#random.whole(1, left)));
    });
  }

  #follow(dispute: SimulatedDispute): void {
    const { scheduler, model } = this.#world;
    scheduler.plan(this.#random.duration(10_000, 3_600_000), null, () => {
      const next = dispute.status === "open" ? "under_review" : this.#random.pick(["won", "lost"] as const);
      scheduler.tell(`the dispute ${dispute.id} is ${next}`);
      model.moveDispute(dispute, next);
      if (next === "under_review") this.#follow(dispute);
    });
  }
}
