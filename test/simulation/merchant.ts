import type { EffectRequest } from "../../src/domain/admit-effect.js";
import { PawlError } from "../../src/domain/errors.js";
import type { PaymentInput } from "../../src/domain/payment.js";
import { createPayment } from "../../src/operations/create-payment.js";
import type { Caller, Deps, RequestContext } from "../../src/operations/deps.js";
import type { KeyedAnswer, WaitPreference } from "../../src/operations/keyed-request.js";
import { requestEffect } from "../../src/operations/request-effect.js";
import type { Loss } from "./loss.js";
import { type EffectPlan, nameOf, type PaymentPlan } from "./plans.js";
import type { Surroundings } from "./surroundings.js";

/** A client that has given up by then leaves the rest to Pawl. */
const MOST_TRIES = 12;
/** What a client hears no answer for in so long it asks for again. */
const CLIENT_TIMEOUT_MS = 60_000;
/** The most that a caller may ask for; some go away before. */
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

interface Request {
  readonly client: string;
  /** As nameOf names it. */
  readonly name: string;
  readonly call: Call;
  /** What it is about was lost with a restored database, so that it may be told that there is no such thing. */
  readonly isGone: () => boolean;
}

interface Told {
  readonly answer: string;
  readonly atMs: number;
}

/** The clients of both merchants, each a task of its own that insists on an answer. */
export class Merchants {
  /** How many clients have not come to an end yet. */
  active = 0;
  /** The final answer that was last heard, and since when, by tenant, operation and key. */
  readonly answers = new Map<string, Told>();
  /** What was heard, and is in no record any more since the database is an older one. */
  readonly #lostAnswers = new Map<string, Told>();
  /** Every request that was made, by the same names: what is asked again at the end. */
  readonly #requests = new Map<string, Request>();
  /** The id that a payment has since it was made again, as the merchant was told for its key. */
  readonly #newIds = new Map<string, string>();
  #loss: Loss | null = null;
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
    this.#insist({
      client: `${plan.key}/${client}`,
      name: nameOf(plan.tenantId, CREATE, plan.key),
      call: (deps, context, wait) =>
        createPayment(deps, { caller: callerOf(plan.tenantId), context, key: plan.key }, input, wait),
      isGone: () => false,
    });
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
          this.#request(plan, payment.id, effect, client);
        });
      }
    };
    scheduler.plan(plan.startsAtMs, null, () => look(0));
  }

  #request(plan: PaymentPlan, paymentId: string, { key, effect }: EffectPlan, client: number): void {
    const { tenantId } = plan;
    const isGone = () => this.#loss?.payments.has(paymentId) ?? false;
    const presentId = () => (isGone() ? this.#newIds.get(nameOf(tenantId, CREATE, plan.key)) : null);
    this.#insist({
      client: `${key}/${client}`,
      name: nameOf(tenantId, OPERATIONS[effect.kind], key),
      call: (deps, context, wait) =>
        requestEffect(
          deps,
          { caller: callerOf(tenantId), context, key },
          presentId() ?? paymentId,
          effect,
          wait,
        ),
      isGone,
    });
  }

  /** Sends every request once more: whatever became of it, its key says the same as ever. */
  askAgain(): void {
    for (const request of [...this.#requests.values()]) {
      this.#insist({ ...request, client: `${request.client} again` });
    }
  }

  /** The database is an older one: what it has told since is no promise of its records any more. */
  forget(loss: Loss): void {
    this.#loss = loss;
    for (const [name, told] of this.answers) {
      if (loss.answers.get(name) === told.answer) continue;
      this.answers.delete(name);
      this.#lostAnswers.set(name, told);
    }
  }

  #insist(request: Request): void {
    this.active += 1;
    const { name, client } = request;
    if (!this.#requests.has(name)) this.#requests.set(name, request);
    this.#untilAnswered(request)
      .catch((error: unknown) => this.#world.fault(`client ${client}: ${String((error as Error).stack)}`))
      .finally(() => {
        this.active -= 1;
      });
  }

  async #untilAnswered(request: Request): Promise<void> {
    const { scheduler, random } = this.#world;
    for (let tries = 1; tries <= MOST_TRIES || this.#world.isCalm; tries += 1) {
      const said = await this.#once(request);
      scheduler.tell(`client ${request.client} hears: ${said}`);
      if (said === "final" || FINAL.has(said)) return;
      // While it is somebody's review, the answer may never come.
      if (this.#world.isCalm && tries > 2 * MOST_TRIES) return;
      await scheduler.pause(random.merchants.duration(100, 20_000 * Math.min(tries, 30)), null);
    }
  }

  async #once(request: Request): Promise<string> {
    const { scheduler, random } = this.#world;
    const { client, name, call } = request;
    const askedAtMs = scheduler.nowMs;
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
    const asking = this.#heard(request, call(process.deps, context, wait));
    const said = await Promise.race([asking, process.dead, gone]);
    leaving.abort();
    if (typeof said === "string") return said;
    if (said.type === "processing") return "processing";
    this.#keep(name, { answer: `${said.response.status} ${said.response.body}`, atMs: askedAtMs });
    return "final";
  }

  /** The answer, or the code of a refusal. Another error is a fault, also where nobody waits for it any more. */
  async #heard(
    { client, name, isGone }: Request,
    asking: Promise<KeyedAnswer>,
  ): Promise<KeyedAnswer | string> {
    try {
      return await asking;
    } catch (error) {
      const code = error instanceof PawlError ? error.code : "internal_error";
      if (error instanceof PawlError && code === "idempotency_key_expired") {
        const { payment } = error.extra;
        if (payment !== undefined) this.#newIds.set(name, payment.id);
      }
      if (PASSING.has(code) || FINAL.has(code)) return code;
      if (code === "not_found" && isGone()) return "idempotency_key_expired";
      this.#world.fault(`client ${client} was told: ${String((error as Error).stack)}`);
      return "internal_error";
    }
  }

  #isFromBefore(askedAtMs: number): boolean {
    return this.#loss !== null && askedAtMs <= this.#loss.restoredAtMs;
  }

  /** Of a payment's create: money was taken or held, and still is. What was released since may be asked for again. */
  #isPaid(answer: string): boolean {
    if (!/^201 .*"object":"payment".*"status":"(succeeded|authorized)"/.test(answer)) return false;
    const objectId = /"provider_payment_id":"(\w+)"/.exec(answer)?.[1] ?? "";
    const intent = this.#world.model.intents.get(objectId);
    return intent !== undefined && intent.captured + intent.capturable > 0;
  }

  /** A key has one answer, for ever. One that is purged and had no effect may have another. */
  #keep(name: string, told: Told): void {
    const { scheduler } = this.#world;
    const { answer } = told;
    if (this.#isFromBefore(told.atMs) && this.#loss?.answers.get(name) !== answer) {
      this.#lostAnswers.set(name, told);
      return;
    }
    const lost = this.#lostAnswers.get(name);
    if (lost !== undefined && this.#isPaid(lost.answer) && !answer.startsWith("2")) {
      this.#world.fault(`${name} was told ${lost.answer} and, after the restore, ${answer}`);
    }
    const known = this.answers.get(name);
    if (known?.answer === answer) return;
    this.answers.set(name, { answer, atMs: scheduler.nowMs });
    if (known === undefined) return;
    scheduler.plan(0, null, async () => {
      if (!(await this.#world.hadEffect(name, known.atMs)) && known.answer.startsWith("4")) return;
      this.#world.fault(`${name} was answered with ${known.answer} and then with ${answer}`);
    });
  }
}

const CREATE = "payments.create";

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

export function callerOf(tenantId: string): Caller {
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
