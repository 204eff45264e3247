import type { EffectRequest } from "../../src/domain/admit-effect.js";
import { PawlError } from "../../src/domain/errors.js";
import type { PaymentInput } from "../../src/domain/payment.js";
import { createPayment } from "../../src/operations/create-payment.js";
import type { Caller, Deps, RequestContext } from "../../src/operations/deps.js";
import type { KeyedAnswer, WaitPreference } from "../../src/operations/keyed-request.js";
import { requestEffect } from "../../src/operations/request-effect.js";
import type { EffectPlan, PaymentPlan } from "./plans.js";
import type { Surroundings } from "./surroundings.js";

/** A client that has given up by then leaves the rest to Pawl. */
const MOST_TRIES = 12;
/** What a client hears no answer for in so long it asks for again. */
const CLIENT_TIMEOUT_MS = 60_000;
/** The most that a caller may ask for (contract section 4); some go away before. */
const WAIT_MS = 30_000;
const MOST_LOOKS = 40;

/** Refusals that say "not now": the same key is sent again. */
const PASSING: ReadonlySet<string> = new Set([
  "idempotency_key_in_progress",
  "operation_in_progress",
  "provider_unavailable",
  "service_unavailable",
]);
/** Refusals after which there is nothing to send again. */
const FINAL: ReadonlySet<string> = new Set([
  "merchant_order_id_taken",
  "idempotency_key_reused",
  "idempotency_key_expired",
]);

type Call = (deps: Deps, context: RequestContext, wait: WaitPreference) => Promise<KeyedAnswer>;

/** The clients of both merchants, each a task of its own that insists on an answer. */
export class Merchants {
  /** How many clients have not come to an end yet. */
  active = 0;
  /** The final answer that was last heard, and since when, by tenant, operation and key. */
  readonly answers = new Map<string, { readonly answer: string; readonly atMs: number }>();
  /** Every request that was made, by the same names: what is asked again at the end. */
  readonly #requests = new Map<string, { readonly client: string; readonly call: Call }>();
  readonly #world: Surroundings;

  constructor(world: Surroundings) {
    this.#world = world;
  }

  begin(plan: PaymentPlan): void {
    const { scheduler, random } = this.#world;
    for (let client = 1; client <= plan.clients; client += 1) {
      const afterMs = client === 1 ? 0 : random.merchants.duration(1, 90_000);
      scheduler.plan(plan.startsAtMs + afterMs, null, () => this.#pay(plan, client));
    }
    if (plan.isMisused) {
      const other = { ...plan, amount: plan.amount + 1 };
      scheduler.plan(plan.startsAtMs + 500, null, () => this.#pay(other, 9));
    }
    for (const effect of plan.effects) this.#later(plan, effect);
  }

  #pay(plan: PaymentPlan, client: number): void {
    const input = inputOf(plan);
    this.#insist(
      `${plan.key}/${client}`,
      nameOf(plan.tenantId, "payments.create", plan.key),
      (deps, context, wait) => createPayment(deps, callerOf(plan.tenantId), context, plan.key, input, wait),
    );
  }

  /** A capture, cancel or refund is asked for when the payment seems to be where it can be. */
  #later(plan: PaymentPlan, effect: EffectPlan): void {
    const { scheduler, random } = this.#world;
    this.active += 1;
    const look = async (looks: number): Promise<void> => {
      const payment = await this.#world.paymentOfKey(plan.tenantId, plan.key);
      const isTime = payment !== null && TIMELY[effect.effect.kind].includes(payment.status);
      if (!isTime && looks < MOST_LOOKS) {
        const againInMs = random.merchants.duration(500, 60_000);
        scheduler.plan(againInMs, null, () => look(looks + 1));
        return;
      }
      this.active -= 1;
      if (payment === null) return;
      for (let client = 1; client <= effect.clients; client += 1) {
        const afterMs = effect.afterMs + (client === 1 ? 0 : random.merchants.duration(1, 30_000));
        this.active += 1;
        scheduler.plan(afterMs, null, () => {
          this.active -= 1;
          this.request(plan.tenantId, payment.id, effect, client);
        });
      }
    };
    scheduler.plan(plan.startsAtMs, null, () => look(0));
  }

  request(tenantId: string, paymentId: string, { key, effect }: EffectPlan, client: number): void {
    this.#insist(`${key}/${client}`, nameOf(tenantId, OPERATIONS[effect.kind], key), (deps, context, wait) =>
      requestEffect(deps, callerOf(tenantId), context, key, paymentId, effect, wait),
    );
  }

  /** Sends every request once more: whatever became of it, its key says the same as ever. */
  askAgain(): void {
    for (const [name, { client, call }] of [...this.#requests]) this.#insist(`${client} again`, name, call);
  }

  #insist(client: string, name: string, call: Call): void {
    this.active += 1;
    if (!this.#requests.has(name)) this.#requests.set(name, { client, call });
    this.#untilAnswered(client, name, call)
      .catch((error: unknown) => this.#world.fault(`client ${client}: ${String((error as Error).stack)}`))
      .finally(() => {
        this.active -= 1;
      });
  }

  async #untilAnswered(client: string, name: string, call: Call): Promise<void> {
    const { scheduler, random } = this.#world;
    for (let tries = 1; tries <= MOST_TRIES || this.#world.isCalm; tries += 1) {
      const said = await this.#once(client, name, call);
      scheduler.tell(`client ${client} hears: ${said}`);
      if (said === "final" || FINAL.has(said)) return;
      // While it is somebody's review, the answer may never come.
      if (this.#world.isCalm && tries > 2 * MOST_TRIES) return;
      await scheduler.pause(random.merchants.duration(100, 20_000 * Math.min(tries, 30)), null);
    }
  }

  async #once(client: string, name: string, call: Call): Promise<string> {
    const { scheduler, random } = this.#world;
    const process = this.#world.anyProcess();
    if (process === null) return "no connection";
    const leaving = new AbortController();
    const isPatient = random.merchants.chance(0.5);
    const wait = isPatient
      ? { waitMs: WAIT_MS, explicit: random.merchants.chance(0.7) }
      : { waitMs: 0, explicit: true };
    if (isPatient) scheduler.plan(random.merchants.duration(50, 60_000), null, () => leaving.abort());
    const context = { requestId: `req_${client}`, traceparent: null, signal: leaving.signal };
    scheduler.tell(`client ${client} asks ${process.name}`);
    const gone = scheduler.pause(CLIENT_TIMEOUT_MS, null).then(() => "timeout" as const);
    scheduler.actingFor = process;
    const asking = this.#heard(client, call(process.deps, context, wait));
    const said = await Promise.race([asking, process.dead, gone]);
    leaving.abort();
    if (typeof said === "string") return said;
    if (said.type === "processing") return "processing";
    this.#keep(name, `${said.response.status} ${said.response.body}`);
    return "final";
  }

  /** The answer, or the code of a refusal. Another error is a fault, also where nobody waits for it any more. */
  async #heard(client: string, asking: Promise<KeyedAnswer>): Promise<KeyedAnswer | string> {
    try {
      return await asking;
    } catch (error) {
      if (error instanceof PawlError && (PASSING.has(error.code) || FINAL.has(error.code))) return error.code;
      this.#world.fault(`client ${client} was told: ${String((error as Error).stack)}`);
      return "internal_error";
    }
  }

  /** A key has one answer, for ever. One that is purged and had no effect may have another. */
  #keep(name: string, answer: string): void {
    const { scheduler } = this.#world;
    const known = this.answers.get(name);
    if (known === undefined) {
      this.answers.set(name, { answer, atMs: scheduler.nowMs });
      return;
    }
    if (known.answer === answer) return;
    this.answers.set(name, { answer, atMs: scheduler.nowMs });
    scheduler.plan(0, null, async () => {
      if (!(await this.#world.hadEffect(name, known.atMs)) && known.answer.startsWith("4")) return;
      this.#world.fault(`${name} was answered with ${known.answer} and then with ${answer}`);
    });
  }
}

const OPERATIONS = {
  capture: "payments.capture",
  cancel: "payments.cancel",
  refund: "refunds.create",
} as const;

const TIMELY: Readonly<Record<EffectRequest["kind"], readonly string[]>> = {
  capture: ["authorized"],
  cancel: ["authorized", "requires_action"],
  refund: ["succeeded"],
};

export function nameOf(tenantId: string, operation: string, key: string): string {
  return `${tenantId} ${operation} ${key}`;
}

function callerOf(tenantId: string): Caller {
  return { tenantId, keyId: "key_simulated", scopes: [], livemode: false };
}

function inputOf(plan: PaymentPlan): PaymentInput {
  return {
    amount: plan.amount,
    currency: "usd",
    payment_method: plan.card,
    capture_method: plan.manual ? "manual" : "automatic",
    merchant_order_id: plan.orderId,
    customer: null,
    description: null,
    statement_descriptor: null,
    return_url: null,
    metadata: {},
  };
}
