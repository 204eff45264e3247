import type { Arrival } from "./port-answers.js";
import { refusal } from "./provider-answers.js";
import type { ProviderModel } from "./provider-model.js";
import type { Post, WireAnswer } from "./provider-objects.js";
import type { Random } from "./random.js";
import type { Owner, Scheduler } from "./scheduler.js";
import { OUTAGE, type RequestFate, type Weather } from "./weather.js";

/**
 * No request arrives later than this after it was sent. It is an assumption about the world: a re-send is guarded by its
 * key for 23 hours from the first send, and keys may be forgotten after 24.
 */
const LONGEST_FLIGHT_MS = 40 * 60_000;

export interface NetworkOptions {
  readonly scheduler: Scheduler;
  readonly random: Random;
  readonly model: ProviderModel;
  readonly weather: () => Weather;
  readonly isDown: () => boolean;
  readonly timeoutMs: number;
}

/** Between our processes and the provider: what goes over it may be lost, or arrive at any later moment. */
export class Network {
  readonly #options: NetworkOptions;

  constructor(options: NetworkOptions) {
    this.#options = options;
  }

  post(owner: Owner, post: Post): Promise<Arrival> {
    const { model, scheduler, random } = this.#options;
    const about = `${post.call} ${post.intentId ?? ""} ${post.id}`;
    return this.#exchange(owner, about, (fate, answered) => {
      const isLate = fate === "late";
      const landsInMs = isLate ? random.duration(2_000, LONGEST_FLIGHT_MS) : random.duration(5, 400);
      scheduler.plan(landsInMs, null, () => {
        const refused = model.begin(post);
        const runsForMs = refused === null && fate === "slow" ? random.duration(500, 90_000) : 0;
        scheduler.tell(
          `provider: ${about} arrives${shown(refused)}${runsForMs > 0 ? ", and takes its time" : ""}`,
        );
        if (refused !== null) return answered(refused);
        const end = () => {
          const answer = model.finish(post);
          scheduler.tell(`provider: ${about} ends${shown(answer)}`);
          answered(answer);
        };
        if (runsForMs === 0) return end();
        scheduler.plan(runsForMs, null, end);
      });
    });
  }

  get(owner: Owner, about: string, read: () => WireAnswer): Promise<Arrival> {
    const { scheduler, random } = this.#options;
    return this.#exchange(owner, about, (fate, answered) => {
      if (fate === "late") return;
      scheduler.plan(random.duration(5, 400), null, () => answered(read()));
    });
  }

  #exchange(
    owner: Owner,
    about: string,
    send: (fate: RequestFate, answered: (answer: WireAnswer) => void) => void,
  ): Promise<Arrival> {
    const { random, scheduler, timeoutMs, weather, isDown } = this.#options;
    const fate = random.weighted<RequestFate>(isDown() ? OUTAGE : weather().requests);
    scheduler.tell(`${owner.name} → ${about}${fate === "fine" ? "" : ` (${fate})`}`);
    return new Promise((resolve) => {
      const arrive = (afterMs: number, arrival: Arrival) =>
        scheduler.plan(afterMs, null, () => resolve(arrival), owner);
      const backMs = () => random.duration(5, 400);
      const answerWith = (answer: WireAnswer) => arrive(backMs(), { type: "answer", answer });
      arrive(timeoutMs, { type: "timeout" });
      switch (fate) {
        case "fine":
        case "slow":
          return send(fate, answerWith);
        case "refused":
          return arrive(random.duration(1, 50), { type: "refused" });
        case "rate_limited":
          return answerWith(refusal(429, "rate_limit"));
        case "unauthorized":
          return answerWith(refusal(401, ""));
        case "unavailable":
          return answerWith(refusal(503, ""));
        case "lost_before":
          return this.#loseNow(arrive);
        case "lost_after":
          return send(fate, () => this.#loseNow(arrive));
        case "late":
          this.#loseNow(arrive);
          return send(fate, () => undefined);
        case "unreadable":
          return send(fate, () => arrive(backMs(), { type: "unreadable" }));
        case "bad_gateway":
          return send(fate, () => answerWith(refusal(502, "")));
      }
    });
  }

  /** The connection breaks, or nothing more is heard of it. */
  #loseNow(arrive: (afterMs: number, arrival: Arrival) => void): void {
    const { random } = this.#options;
    if (random.chance(0.5)) arrive(random.duration(5, 5_000), { type: "lost" });
  }
}

function shown(answer: WireAnswer | null): string {
  if (answer === null) return "";
  return `: ${answer.status}${answer.code === undefined ? "" : ` ${answer.code}`}${answer.replayed ? " replayed" : ""}`;
}
