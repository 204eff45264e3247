import { Agenda, type DueStep } from "./agenda.js";
import { expireAuthorization } from "./authorizations.js";
import type { Call, CallFor } from "./call.js";
import { bookLate, captureBeforeOf, tokenOf } from "./charges.js";
import type { SandboxClock } from "./clock.js";
import { openDispute } from "./disputes.js";
import { idOf } from "./ids.js";
import { disputeOf, refundBehaviourOf } from "./payment-methods.js";
import { failRefund, succeedRefund, USUAL_FAILURE } from "./refunds.js";
import type { LiveSettings } from "./settings.js";
import type { Realm, Store } from "./store.js";

export interface LifecycleParts {
  readonly store: Store;
  readonly clock: SandboxClock;
  readonly settings: LiveSettings;
  readonly callFor: CallFor;
}

// Node's longest timer; a step further away is looked at again then.
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * What happens by itself as the sandbox's clock goes on. Steps are carried out when the clock is moved past them, before
 * any request that comes later, and by a timer while nothing else happens. Each looks at the object as it is then.
 */
export class Lifecycle {
  readonly #parts: LifecycleParts;
  readonly #agenda = new Agenda();
  #timer: NodeJS.Timeout | null = null;
  #stopped = false;

  constructor(parts: LifecycleParts) {
    this.#parts = parts;
    for (const realm of parts.store.realms.values()) this.#resume(realm);
    this.#arm();
  }

  /** `dueMs`: milliseconds since 1970 on the sandbox's clock. */
  schedule(step: DueStep, dueMs: number): void {
    this.#agenda.add(step, dueMs);
    if (this.#agenda.nextMs === dueMs) this.#arm();
  }

  /** Carries out everything whose time has come. */
  catchUp(): void {
    const { clock, store } = this.#parts;
    const nextMs = this.#agenda.nextMs;
    if (nextMs === null || nextMs > clock.nowMs()) return;
    // A step may schedule another that is due as well; each kind comes once an object, so it ends.
    for (let due = this.#agenda.take(clock.nowMs()); due.length > 0; due = this.#agenda.take(clock.nowMs())) {
      for (const step of due) this.#carryOut(step);
    }
    store.commit();
    this.#arm();
  }

  /** The clock was moved: to where steps are due, or away from them. */
  clockMoved(): void {
    this.catchUp();
    this.#arm();
  }

  clear(): void {
    this.#agenda.clear();
    this.#arm();
  }

  stop(): void {
    this.#stopped = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #arm(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const nextMs = this.#agenda.nextMs;
    if (nextMs === null || this.#stopped) return;
    const waitMs = Math.min(Math.max(nextMs - this.#parts.clock.nowMs(), 0), LONGEST_TIMER_MS);
    this.#timer = setTimeout(() => {
      this.catchUp();
      this.#arm();
    }, waitMs);
    this.#timer.unref();
  }

  #carryOut(step: DueStep): void {
    const realm = this.#parts.store.realm(step.realm);
    // Nobody's request: the events say so.
    const call: Call = { ...this.#parts.callFor(realm, step.id, {}, false), requestId: null };
    const paymentIntent = realm.paymentIntents.get(step.id);
    const charge = realm.charges.get(step.id);
    const refund = realm.tables.refund.get(step.id);
    switch (step.kind) {
      case "authorization_expires":
        if (paymentIntent !== undefined) expireAuthorization(call, paymentIntent);
        return;
      case "refund_succeeds":
        if (refund?.status === "pending") succeedRefund(call, refund);
        return;
      case "refund_fails":
        if (refund?.status === "succeeded") failRefund(call, refund, USUAL_FAILURE);
        return;
      case "charge_booked":
        if (charge !== undefined) bookLate(call, charge);
        return;
      case "dispute_opens": {
        const dispute = charge === undefined ? null : disputeOf(tokenOf(call, charge) ?? "");
        if (charge === undefined || dispute === null || charge.disputed || charge.refunded) return;
        openDispute(call, charge, dispute);
        return;
      }
    }
  }

  /** After a restart: what was to come follows from the objects and the settings. */
  #resume(realm: Realm): void {
    const { settings } = this.#parts;
    const add = (kind: DueStep["kind"], id: string, dueMs: number): void =>
      this.#agenda.add({ kind, realm: realm.name, id }, dueMs);
    for (const paymentIntent of realm.paymentIntents.values()) {
      const charge = realm.charges.get(idOf(paymentIntent.latest_charge));
      if (charge === undefined) continue;
      const before = captureBeforeOf(charge);
      if (paymentIntent.status === "requires_capture" && before !== null) {
        add("authorization_expires", paymentIntent.id, before * 1000);
      }
      if (!charge.captured) continue;
      const madeMs = charge.created * 1000;
      if (charge.balance_transaction === null && settings.charge_booked_after_ms > 0) {
        add("charge_booked", charge.id, madeMs + settings.charge_booked_after_ms);
      }
      const token = realm.paymentMethods.get(charge.payment_method ?? "")?.token ?? "";
      if (disputeOf(token) !== null && !charge.disputed && settings.dispute_opens_after_ms !== null) {
        add("dispute_opens", charge.id, madeMs + settings.dispute_opens_after_ms);
      }
    }
    if (settings.refund_settles_after_ms === null) return;
    for (const refund of realm.tables.refund.oldestFirst()) {
      const token = realm.paymentMethods.get(idOf(refund.payment_method))?.token ?? "";
      const behaviour = refundBehaviourOf(token);
      const dueMs = refund.created * 1000 + settings.refund_settles_after_ms;
      if (behaviour === "pending" && refund.status === "pending") add("refund_succeeds", refund.id, dueMs);
      const isRelease = refund.balance_transaction === null;
      if (behaviour === "fails" && refund.status === "succeeded" && !isRelease) {
        add("refund_fails", refund.id, dueMs);
      }
    }
  }
}
