import type { ListedEvent } from "../../src/domain/provider.js";
import { receiveProviderEvent } from "../../src/operations/receive-provider-event.js";
import { readNotice } from "../../src/providers/stripe/notice.js";
import type { ProviderNews } from "./provider-model.js";
import type { SimulatedPayout } from "./provider-objects.js";
import type { Surroundings } from "./surroundings.js";

interface Notice {
  readonly id: string;
  readonly type: string;
  readonly body: string;
}

/** The provider's events on their way to us: twice, late, in any order, and again until one of us has taken them. */
export class Notices {
  readonly #world: Surroundings;
  #count = 0;
  /** Not taken by us yet. */
  open = 0;
  /** What never arrived: only a comparison with the provider can tell us. */
  readonly givenUp: ListedEvent[] = [];

  constructor(world: Surroundings) {
    this.#world = world;
  }

  about({ type, intent, objectId }: ProviderNews): void {
    const isIntent = type.startsWith("payment_intent.");
    const object = isIntent
      ? { id: objectId, metadata: { payment_attempt_id: intent.attemptId, tenant_id: intent.tenantId } }
      : { id: objectId, payment_intent: intent.id };
    this.#send(type, object);
  }

  aboutPayout(payout: SimulatedPayout): void {
    this.#send("payout.paid", { id: payout.id, automatic: true });
  }

  #send(type: string, object: object): void {
    const { random, weather } = this.#world;
    this.#count += 1;
    const id = `evt_${String(this.#count)}`;
    const body = JSON.stringify({ id, type, livemode: false, data: { object } });
    const notice = { id, type, body };
    if (random.world.chance(weather().noticesLost)) {
      const read = readNotice(Buffer.from(body));
      if (read === null) throw new Error(`a notice that cannot be read: ${body}`);
      this.givenUp.push({ notice: read, payload: body });
      return;
    }
    const copies = random.world.chance(weather().noticesTwice) ? 2 : 1;
    for (let copy = 0; copy < copies; copy += 1) {
      const isLate = random.world.chance(weather().noticesLate);
      this.open += 1;
      this.#plan(
        notice,
        isLate ? random.world.duration(5_000, 3_600_000) : random.world.duration(10, 3_000),
        1,
      );
    }
  }

  #plan(notice: Notice, afterMs: number, tries: number): void {
    const { scheduler } = this.#world;
    scheduler.plan(afterMs, null, () => {
      this.#deliver(notice, tries).catch((error: unknown) =>
        this.#world.fault(`event ${notice.id}: ${String((error as Error).stack)}`),
      );
    });
  }

  async #deliver(notice: Notice, tries: number): Promise<void> {
    const { random, scheduler, isCalm } = this.#world;
    const process = this.#world.anyProcess();
    const said = process === null ? "no connection" : await this.#offer(notice, process);
    scheduler.tell(`provider: ${notice.type} ${notice.id} is ${said}`);
    const isAckLost = !isCalm && random.world.chance(0.1);
    if (TAKEN.has(said) && !isAckLost) {
      this.open -= 1;
      return;
    }
    this.#plan(notice, random.world.duration(5_000, 120_000) * tries, tries + 1);
  }

  async #offer(
    notice: Notice,
    process: NonNullable<ReturnType<Surroundings["anyProcess"]>>,
  ): Promise<string> {
    this.#world.scheduler.actingFor = process;
    const receiving = receiveProviderEvent(process.deps, Buffer.from(notice.body), []).then(
      (received) => received.type,
      (error: unknown) => {
        this.#world.unlessPassing(error, `event ${notice.id}`);
        return "not taken";
      },
    );
    return Promise.race([receiving, process.dead]);
  }
}

const TAKEN: ReadonlySet<string> = new Set(["stored", "duplicate", "ignored"]);
