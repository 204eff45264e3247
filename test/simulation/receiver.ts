import type { DeliveryResult, WebhookMessage, WebhookSender } from "../../src/domain/webhook.js";
import type { Random } from "./random.js";
import type { Owner, Scheduler } from "./scheduler.js";
import type { DeliveryFate, Weather } from "./weather.js";

export interface Arrived {
  readonly url: string;
  readonly eventId: string;
  readonly body: string;
}

export interface ReceiverOptions {
  readonly scheduler: Scheduler;
  readonly random: Random;
  readonly weather: () => Weather;
  readonly timeoutMs: number;
}

/** The merchants' receivers: they keep everything that arrives, and sometimes say that they did not. */
export class Receivers {
  readonly arrived: Arrived[] = [];
  readonly #options: ReceiverOptions;

  constructor(options: ReceiverOptions) {
    this.#options = options;
  }

  senderOf(owner: Owner): WebhookSender {
    return { mayTarget: () => Promise.resolve(true), send: (message) => this.#send(owner, message) };
  }

  #send(owner: Owner, message: WebhookMessage): Promise<DeliveryResult> {
    const { scheduler, random, weather, timeoutMs } = this.#options;
    const fate = random.weighted<DeliveryFate>(weather().deliveries);
    return new Promise((resolve) => {
      const answer = (result: DeliveryResult, afterMs: number) =>
        scheduler.plan(afterMs, null, () => resolve(result), owner);
      if (fate === "refused") return answer(failed("connection_refused"), random.duration(1, 50));
      if (fate === "timeout") return answer(failed("timeout"), timeoutMs);
      scheduler.plan(random.duration(5, 1_000), null, () => {
        const backMs = random.duration(5, 300);
        if (fate === "error") return answer({ ...failed("status"), status: 500, answer: "" }, backMs);
        scheduler.tell(`${message.url} gets ${message.eventId}${fate === "fine" ? "" : ` (${fate})`}`);
        this.arrived.push({ url: message.url, eventId: message.eventId, body: message.body });
        answer(fate === "lost_after" ? failed("connection_lost") : DELIVERED, backMs);
      });
    });
  }
}

const DELIVERED: DeliveryResult = { delivered: true, status: 200, fault: null, answer: "" };

function failed(fault: NonNullable<DeliveryResult["fault"]>): DeliveryResult {
  return { delivered: false, status: null, fault, answer: null };
}
