import type { ProviderNews } from "./provider-model.js";
import type { Intent } from "./provider-objects.js";
import type { Random } from "./random.js";
import type { Surroundings } from "./surroundings.js";

/** What somebody at the provider's dashboard may do to an object that only Pawl should touch. */
export type Tampering =
  /** Its metadata names another attempt or tenant, or nobody; sometimes put right later. */
  | "marks"
  /** It is for another amount by the time it is paid. */
  | "amount"
  /** The provider answers 404 for it for a while. */
  | "missing"
  /** Nobody has confirmed it, and it is deleted. */
  | "deleted";

/** How often, of all objects. */
export type TamperingHabits = Readonly<Record<Tampering, number>>;

export const NO_TAMPERING: TamperingHabits = { marks: 0, amount: 0, missing: 0, deleted: 0 };

/** Not in seeds where rows are lost: an object whose metadata was changed is then nobody's (docs/guarantees.md). */
export function drawTampering(random: Random): TamperingHabits {
  if (!random.chance(0.35)) return NO_TAMPERING;
  const some = (rare: number, common: number) => random.pick([0, rare, common]);
  return {
    marks: some(0.1, 0.4),
    amount: some(0.1, 0.4),
    missing: some(0.1, 0.4),
    deleted: some(0.05, 0.15),
  };
}

/** By then every attempt that asks has asked again. */
const LONGEST_WAIT_MS = 310_000;
const NEVER_MS = Number.POSITIVE_INFINITY;

/** Objects go missing, change, and carry other marks. */
export class Tampered {
  /** What was done to which object. */
  readonly done = new Map<string, Set<Tampering>>();
  readonly #world: Surroundings;
  readonly #random: Random;
  readonly #habits: TamperingHabits;

  constructor(world: Surroundings, random: Random, habits: TamperingHabits) {
    this.#world = world;
    this.#random = random;
    this.#habits = habits;
  }

  hears({ type, intent }: ProviderNews): void {
    if (type === "payment_intent.created") {
      this.#perhaps("marks", intent, 10, 1_800_000, () => this.#mark(intent));
      this.#perhaps("amount", intent, 1, 3_000, () => this.#alter(intent));
      this.#perhaps("missing", intent, 10, 1_800_000, () => this.#hide(intent));
      this.#perhaps("deleted", intent, 1, 3_000, () => this.#delete(intent));
    }
    if (type === "payment_intent.requires_action")
      this.#perhaps("amount", intent, 100, 60_000, () => this.#alter(intent));
  }

  has(intentId: string, what: Tampering): boolean {
    return this.done.get(intentId)?.has(what) ?? false;
  }

  /** As it was made, where that is possible. */
  putRight(intent: Intent): void {
    const { attemptId, tenantId } = intent;
    const isMarked = intent.marks.attemptId === attemptId && intent.marks.tenantId === tenantId;
    const isMissing = intent.missingUntilMs > this.#world.scheduler.nowMs;
    if (isMarked && (!isMissing || intent.missingUntilMs === NEVER_MS)) return;
    this.#world.scheduler.tell(`the dashboard puts ${intent.id} right`);
    intent.marks = { attemptId, tenantId };
    if (intent.missingUntilMs !== NEVER_MS) intent.missingUntilMs = 0;
    this.#world.polling.wakeOnce("attempts", LONGEST_WAIT_MS);
  }

  #perhaps(what: Tampering, intent: Intent, leastMs: number, mostMs: number, act: () => boolean): void {
    if (!this.#random.chance(this.#habits[what])) return;
    const { scheduler } = this.#world;
    scheduler.plan(this.#random.duration(leastMs, mostMs), null, () => {
      if (this.#world.isCalm || intent.lockedBy !== null || !act()) return;
      scheduler.tell(`the dashboard: ${what} of ${intent.id}`);
      const known = this.done.get(intent.id) ?? new Set();
      this.done.set(intent.id, known.add(what));
    });
  }

  #mark(intent: Intent): boolean {
    const { attemptId, tenantId } = intent;
    intent.marks = this.#random.pick([
      { attemptId: "att_of_somebody_else", tenantId },
      { attemptId, tenantId: "ten_of_somebody_else" },
      { attemptId: null, tenantId: null },
    ]);
    if (this.#random.chance(0.5)) this.#later(60_000, 7_200_000, () => this.putRight(intent));
    return true;
  }

  /** An amount can be changed until the object is confirmed (docs.stripe.com/api/payment_intents/update). */
  #alter(intent: Intent): boolean {
    if (!["requires_confirmation", "requires_action"].includes(intent.status)) return false;
    intent.amount += this.#random.pick([-1, 1]) * this.#random.whole(1, 99);
    return true;
  }

  #hide(intent: Intent): boolean {
    const forMs = this.#random.duration(60_000, 3_600_000);
    intent.missingUntilMs = this.#world.scheduler.nowMs + forMs;
    this.#world.polling.wakeOnce("attempts", forMs + LONGEST_WAIT_MS);
    return true;
  }

  #delete(intent: Intent): boolean {
    if (intent.status !== "requires_confirmation") return false;
    intent.missingUntilMs = NEVER_MS;
    return true;
  }

  #later(leastMs: number, mostMs: number, act: () => void): void {
    this.#world.scheduler.plan(this.#random.duration(leastMs, mostMs), null, act);
  }
}
