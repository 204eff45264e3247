import type { ListedEvent } from "../../src/domain/provider.js";
import { receiveProviderEvent } from "../../src/operations/receive-provider-event.js";
import { readNotice } from "../../src/providers/stripe/notice.js";
import type { ProviderNews } from "./provider-model.js";
import { ACCOUNT, type Intent, type SimulatedPayout } from "./provider-objects.js";
import type { Surroundings } from "./surroundings.js";

interface Notice {
  readonly id: string;
  readonly type: string;
  readonly body: string;
  readonly objectId: string;
  /** Whose secret signs it. */
  readonly account: string;
}

export interface DatedEvent extends ListedEvent {
  readonly atMs: number;
}

/** The provider's events on their way to us: twice, late, in any order, and again until one of us has taken them. */
export class Notices {
  readonly #world: Surroundings;
  #count = 0;
  /** Not taken by us yet. */
  open = 0;
  /** What never arrived: only a comparison with the provider can tell us. */
  readonly givenUp: ListedEvent[] = [];
  /** What was told of payouts, delivered or not, and when. */
  readonly ofPayouts: DatedEvent[] = [];

  /** Of an account whose credential no process has now. */
  #kept: { readonly notice: Notice; readonly tries: number }[] = [];

  constructor(world: Surroundings) {
    this.#world = world;
  }

  /** Processes have another credential from now on. */
  sendKept(): void {
    const kept = this.#kept;
    this.#kept = [];
    for (const { notice, tries } of kept)
      this.#plan(notice, this.#world.random.world.duration(100, 60_000), tries);
  }

  about({ type, intent, objectId }: ProviderNews): void {
    const isIntent = type.startsWith("payment_intent.");
    const object = isIntent
      ? { id: objectId, metadata: metadataOf(intent) }
      : { id: objectId, payment_intent: intent.id };
    this.#send(type, object, intent.account);
  }

  aboutPayout(payout: SimulatedPayout): void {
    this.#send("payout.paid", { id: payout.id, automatic: true }, ACCOUNT);
  }

  #send(
    type: string,
    object: { readonly id: string; readonly [member: string]: unknown },
    account: string,
  ): void {
    const { random, weather } = this.#world;
    this.#count += 1;
    const id = `evt_${String(this.#count)}`;
    const body = JSON.stringify({ id, type, livemode: false, data: { object } });
    const notice = { id, type, body, account, objectId: object.id };
    const read = readNotice(Buffer.from(body));
    if (read === null) throw new Error(`a notice that cannot be read: ${body}`);
    const listed = { notice: read, payload: body };
    if (read.subject.type === "payout") this.ofPayouts.push({ ...listed, atMs: this.#world.scheduler.nowMs });
    if (random.world.chance(weather().noticesLost)) {
      this.givenUp.push(listed);
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
    const { random, scheduler, isCalm, account } = this.#world;
    // Each account signs with a secret of its own: as long as nobody here has it, nothing is taken.
    if (notice.account !== account) {
      this.#kept.push({ notice, tries });
      return;
    }
    const process = this.#world.anyProcess();
    const said = process === null ? "no connection" : await this.#offer(notice, process);
    const isTaken = TAKEN.has(said);
    scheduler.tell(`provider: ${notice.type} ${notice.id} is ${said}`);
    const isAckLost = !isCalm && random.world.chance(0.1);
    if (isTaken && !isAckLost) {
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

function metadataOf({ marks }: Intent): Readonly<Record<string, string>> {
  return {
    ...(marks.attemptId === null ? {} : { payment_attempt_id: marks.attemptId }),
    ...(marks.tenantId === null ? {} : { tenant_id: marks.tenantId }),
  };
}

const TAKEN: ReadonlySet<string> = new Set(["stored", "duplicate", "ignored"]);
