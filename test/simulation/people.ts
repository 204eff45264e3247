import { PawlError } from "../../src/domain/errors.js";
import { REVIEW_RESOLUTIONS, type ReviewResolution } from "../../src/domain/instruction.js";
import { type Review, type ReviewEvidence, versionOf } from "../../src/domain/review-document.js";
import { listOpenReviews } from "../../src/operations/list-reviews.js";
import { getReview } from "../../src/operations/read-reviews.js";
import { type Decision, resolveReview, resolveReviewByCommand } from "../../src/operations/resolve-review.js";
import { callerOf } from "./merchant.js";
import type { Random } from "./random.js";
import type { SimulatedProcess } from "./simulated-process.js";
import type { Surroundings } from "./surroundings.js";

/** A decision that was sent, and what its sender was told. */
export interface SentDecision {
  readonly review: Pick<Review, "id" | "tenantId" | "paymentId" | "attemptId">;
  readonly resolution: ReviewResolution;
  /** Unlike every other. */
  readonly reason: string;
  /** Who the audit must name. */
  readonly by: string;
  /** When it was sent first, and when its sender was told, or sent it last. */
  readonly atMs: number;
  lastAtMs: number;
  /** `unknown`: nobody lived to tell, or the database was away. */
  told: "accepted" | "refused" | "unknown";
}

const WHO = { api: "key_simulated", command: "command-line" } as const;

/** Refusals that a person may be told; another is a fault. */
const REFUSALS: ReadonlySet<string> = new Set([
  "review_closed",
  "review_changed",
  "resolution_not_allowed",
  "validation_failed",
]);
const MOST_TRIES = 12;
/** So often a person tries each thing before they give a review up, when all is calm. */
const MOST_DECISIONS = 10;
const DAY_MS = 25 * 3_600_000;

/**
 * People who list what needs a decision and decide it, by the API or at the command line: alone or two at once, while
 * a fact arrives, and sometimes about a review that has ended since they saw it.
 */
export class People {
  readonly decisions: SentDecision[] = [];
  readonly #world: Surroundings;
  readonly #random: Random;
  /** By review: how often each resolution was tried. */
  readonly #tried = new Map<string, Map<ReviewResolution, number>>();
  readonly #givenUp = new Set<string>();
  #hasSlept = false;
  #seen: Review[] = [];
  #isComing = false;

  constructor(world: Surroundings, random: Random) {
    this.#world = world;
    this.#random = random;
  }

  /** There are reviews that nobody has decided. */
  expect(reviewIds: readonly string[]): void {
    const open = reviewIds.filter((id) => !this.#givenUp.has(id));
    if (this.#isComing || open.length === 0) return;
    this.#isComing = true;
    const { scheduler, isCalm } = this.#world;
    const isTired = isCalm && open.every((id) => this.#countOf(id) >= MOST_DECISIONS);
    if (isTired) this.#tire(open);
    const afterMs = isTired ? DAY_MS : this.#random.duration(20_000, isCalm ? 900_000 : 2_400_000);
    scheduler.plan(afterMs, null, () => {
      this.#isComing = false;
      this.#visit();
    });
  }

  /** Nothing that can be decided about it has had an effect. */
  hasGivenUp(reviewId: string): boolean {
    return this.#givenUp.has(reviewId);
  }

  /**
   * What only time makes decidable (a key's lifetime that ends) is left for the next day, once; and the metadata of its
   * object is put right.
   */
  #tire(ids: readonly string[]): void {
    for (const id of ids) {
      if (this.#hasSlept) this.#givenUp.add(id);
      const review = this.#seen.find((one) => one.id === id);
      if (review !== undefined) this.#world.putRight(review.attemptId);
      this.#tried.delete(id);
    }
    this.#hasSlept = true;
  }

  #countOf(id: string): number {
    return [...(this.#tried.get(id) ?? [])].reduce((sum, [, count]) => sum + count, 0);
  }

  #visit(): void {
    const process = this.#world.anyProcess();
    if (process === null) return;
    this.#world.scheduler.tell(`a person looks at the reviews at ${process.name}`);
    process.run("a person", async () => {
      const open = await listOpenReviews(process.deps, null, 100);
      const closed = this.#seen.filter(({ id }) => !open.some((review) => review.id === id));
      const outdated = closed.length > 0 && this.#random.chance(0.3) ? this.#random.pick(closed) : null;
      if (outdated !== null) this.#decideBlindly(outdated);
      for (const review of open) {
        if (review.resolution === null && !this.#givenUp.has(review.id)) await this.#look(process, review);
      }
      this.#seen = [...closed, ...open];
    });
  }

  /** What was seen open is decided without another look. */
  #decideBlindly(review: Review): void {
    this.#send(review, this.#random.pick(REVIEW_RESOLUTIONS), null);
  }

  async #look(process: SimulatedProcess, review: Review): Promise<void> {
    const evidence = await this.#read(process, review);
    if (evidence === null) return;
    const resolution = this.#choose(evidence);
    if (resolution === null) return;
    const objectId = this.#nameObject(evidence, resolution);
    this.#send(review, resolution, objectId);
    // Somebody else has seen the same, and decides otherwise.
    if (this.#random.chance(0.2)) this.#send(review, this.#random.pick(REVIEW_RESOLUTIONS), null);
    if (this.#random.chance(0.3)) this.#world.makeFact(review.attemptId);
  }

  /** Null: it was lost with a restored database since it was listed. */
  async #read(process: SimulatedProcess, { id, tenantId }: Review): Promise<ReviewEvidence | null> {
    try {
      return await getReview(process.deps, callerOf(tenantId), id);
    } catch (error) {
      const isGone = error instanceof PawlError && error.code === "not_found";
      if (isGone && this.#world.isLostReview(id)) return null;
      throw error;
    }
  }

  /** Mostly what is allowed, and of that what was tried least. */
  #choose({ review, allowed }: ReviewEvidence): ReviewResolution | null {
    const names = allowed.map(({ resolution }) => resolution);
    const tried = this.#tried.get(review.id) ?? new Map<ReviewResolution, number>();
    this.#tried.set(review.id, tried);
    const least = Math.min(...names.map((name) => tried.get(name) ?? 0));
    const fresh = names.filter((name) => (tried.get(name) ?? 0) === least);
    const isBlind = names.length === 0 || this.#random.chance(0.1);
    const resolution = this.#random.pick(isBlind ? REVIEW_RESOLUTIONS : fresh);
    tried.set(resolution, (tried.get(resolution) ?? 0) + 1);
    return resolution;
  }

  /**
   * At the provider's dashboard a person sees which object it is, whatever its metadata says. It is named every other
   * time: some reviews end only with it, and some only without.
   */
  #nameObject({ review, attempt }: ReviewEvidence, resolution: ReviewResolution): string | null {
    const tries = this.#tried.get(review.id)?.get(resolution) ?? 0;
    if (attempt.kind !== "charge" || tries % 2 === 0) return null;
    if (resolution !== "adopt_provider_object" && resolution !== "cancel_at_provider") return null;
    const known = attempt.providerPaymentId;
    if (known !== null) return known;
    const made = [...this.#world.model.intents.values()].find((intent) => intent.attemptId === attempt.id);
    return made?.id ?? null;
  }

  #send(review: Review, resolution: ReviewResolution, providerObjectId: string | null): void {
    const how = this.#random.chance(0.7) ? ("api" as const) : ("command" as const);
    const count = this.decisions.length + 1;
    const reason = `decision ${String(count)}`;
    const { scheduler } = this.#world;
    const sent: SentDecision = {
      review,
      resolution,
      reason,
      by: WHO[how],
      atMs: scheduler.nowMs,
      lastAtMs: scheduler.nowMs,
      told: "unknown",
    };
    this.decisions.push(sent);
    // Every other person says which version they have looked at.
    const version = count % 2 === 0 ? versionOf(review) : null;
    const decision: Decision = { resolution, reason, providerObjectId, version };
    this.#untilTold(sent, decision, how).catch((error: unknown) =>
      this.#world.fault(`${reason}: ${String((error as Error).stack)}`),
    );
  }

  async #untilTold(sent: SentDecision, decision: Decision, how: keyof typeof WHO): Promise<void> {
    const { scheduler } = this.#world;
    for (let tries = 1; tries <= MOST_TRIES; tries += 1) {
      await scheduler.pause(this.#random.duration(1, 3_000), null);
      const said = await this.#once(sent, decision, how);
      sent.lastAtMs = scheduler.nowMs;
      const named = decision.providerObjectId ?? "no object named";
      const about = `${sent.review.id} as ${sent.resolution} (${sent.reason}, ${how}, ${named})`;
      scheduler.tell(`a person resolves ${about} and hears: ${said}`);
      if (said === "review_changed") this.#reconsider(sent);
      if (said !== "not told") {
        sent.told = said === "accepted" ? "accepted" : "refused";
        return;
      }
      // Without a key, a person who does not know looks again before they do anything.
      if (how === "command") return;
    }
  }

  /** It is about something else by now: what was decided has not been tried for that. */
  #reconsider({ review, resolution }: SentDecision): void {
    const tried = this.#tried.get(review.id);
    tried?.set(resolution, Math.max(0, (tried.get(resolution) ?? 0) - 1));
    this.#givenUp.delete(review.id);
  }

  async #once(sent: SentDecision, decision: Decision, how: keyof typeof WHO): Promise<string> {
    const process = this.#world.anyProcess();
    if (process === null) return "not told";
    this.#world.scheduler.actingFor = process;
    return Promise.race([this.#ask(process, sent, decision, how), process.dead.then(() => "not told")]);
  }

  async #ask(
    process: SimulatedProcess,
    { review, reason }: SentDecision,
    decision: Decision,
    how: keyof typeof WHO,
  ): Promise<string> {
    const context = { requestId: `req_${reason}`, traceparent: null, signal: new AbortController().signal };
    const call = { caller: callerOf(review.tenantId), context, key: reason };
    try {
      if (how === "command") {
        await resolveReviewByCommand(process.deps, review.id, decision);
      } else await resolveReview(process.deps, call, review.id, decision);
      return "accepted";
    } catch (error) {
      const code = error instanceof PawlError ? error.code : null;
      if (code === "service_unavailable") return "not told";
      if (code !== null && REFUSALS.has(code)) return code;
      if (code === "not_found" && this.#world.isLostReview(review.id)) return code;
      this.#world.fault(`${reason} was told: ${String((error as Error).stack)}`);
      return "internal_error";
    }
  }
}
