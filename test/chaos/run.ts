import { ledgerFaults } from "../support/ledger-faults.js";
import { type Blow, type BlowName, drawBlows } from "./blows.js";
import { answerFaults, openReviews } from "./check-answers.js";
import { bookFaults } from "./check-books.js";
import { eventFaults } from "./check-events.js";
import { readLogs } from "./check-logs.js";
import { providerFaults } from "./check-provider.js";
import { wireFaults } from "./check-wire.js";
import { examinationFaults } from "./examination.js";
import { Load } from "./load.js";
import { comparisonFaults } from "./reconcile.js";
import { settle } from "./settle.js";
import { keepEvidence, type Snapshot, takeSnapshot } from "./snapshot.js";
import { strike } from "./strike.js";
import { ChaosSystem } from "./system.js";

export interface ChaosOptions {
  readonly seed: number;
  readonly callers: number;
  /** Answers between two blows: enough that each of them finds work under way. */
  readonly between: number;
  /** Whether there shall be another blow. */
  readonly goesOn: (blows: number) => boolean;
  readonly say: (line: string) => void;
  /** Also where there is no fault. */
  readonly keepLogs: boolean;
}

export interface ChaosReport {
  readonly seed: number;
  readonly minutes: number;
  readonly payments: Readonly<Record<string, number>>;
  /** Of each kind of effect, how many there were. */
  readonly effects: Readonly<Record<string, number>>;
  readonly events: number;
  /** Requests of all callers that were answered for good, and the passing answers before that, by code. */
  readonly answers: number;
  readonly refusals: Readonly<Record<string, number>>;
  /** Requests that got no answer. */
  readonly broken: number;
  readonly blows: Readonly<Record<string, number>>;
  /** From a blow to the answers that show that the system works again: the longest. */
  readonly longestRecovery: { readonly after: BlowName | null; readonly ms: number };
  /** From the end of the last story to an end of all work. */
  readonly settledMs: number;
  /** From a payment's accept to its first outcome. */
  readonly longestPaymentMs: number;
  readonly reviews: readonly string[];
  readonly errorsLogged: Readonly<Record<string, number>>;
  /** A sentence each; none is the only right outcome. */
  readonly faults: readonly string[];
  readonly logFolder: string;
}

/** What is known of the blows so far. */
interface Course {
  readonly blows: Map<BlowName, number>;
  longest: ChaosReport["longestRecovery"];
}

const MINUTE_MS = 60_000;

/** Some of them begin anew when the budget of their charge is over. */
const STORIES_END_MS = 150_000;
const SETTLE_MS = 120_000;

/** One run: load and blows, then peace, then everything is compared. The logs stay where there is a fault. */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const begunAt = Date.now();
  const system = await ChaosSystem.start(options.seed);
  const { seed, callers, say } = options;
  say(`seed ${String(seed)}; logs in ${system.morgue.folder}`);
  let isWhole = false;
  try {
    const load = new Load({ seed, callers, secret: system.secret, urls: () => system.urls });
    const course: Course = { blows: new Map(), longest: { after: null, ms: 0 } };
    const stopped = await underBlows(system, load, options, course).then(
      () => [],
      (error: unknown) => [`the run stopped: ${String(error)}`],
    );
    const outcome = await compare(system, load, say, begunAt);
    const faults = [...system.morgue.unexpected, ...stopped, ...outcome.faults];
    isWhole = faults.length === 0;
    if (!isWhole) await keepEvidence(system.morgue.folder, system.database.sql, system.provider.logs);
    return {
      ...outcome,
      seed,
      minutes: (Date.now() - begunAt) / MINUTE_MS,
      blows: Object.fromEntries(course.blows),
      longestRecovery: course.longest,
      faults,
      logFolder: system.morgue.folder,
    };
  } finally {
    await system.remove(isWhole && !options.keepLogs);
  }
}

async function underBlows(
  system: ChaosSystem,
  load: Load,
  { seed, between, goesOn, say }: ChaosOptions,
  course: Course,
): Promise<void> {
  await load.progress(between);
  let count = 0;
  let tellAtMs = performance.now() + MINUTE_MS;
  for (const blow of drawBlows(seed)) {
    if (!goesOn(count)) return;
    count += 1;
    const beganMs = performance.now();
    say(`${at()} ${describe(blow)}`);
    await strike(system, blow);
    const struckMs = performance.now();
    await load.progress(between);
    system.expectAlive();
    const ms = Math.round(performance.now() - struckMs);
    say(`${at()}   back after ${Math.round(struckMs - beganMs)} ms, ${between} more answers after ${ms} ms`);
    course.blows.set(blow.name, (course.blows.get(blow.name) ?? 0) + 1);
    if (ms > course.longest.ms) course.longest = { after: blow.name, ms };
    if (performance.now() < tellAtMs) continue;
    tellAtMs += MINUTE_MS;
    const { answered, broken, faults } = load.seen;
    say(
      `${at()} ${count} blows, ${answered} answers, ${broken} requests without one, ${faults.length} wrong`,
    );
  }
}

async function compare(system: ChaosSystem, load: Load, say: (line: string) => void, begunAt: number) {
  say(`${at()} peace`);
  const { database, provider, receiver } = system;
  await provider.calm();
  receiver.isReliable = true;
  await load.finish(STORIES_END_MS);
  const beganMs = performance.now();
  const unsettled = await settle(database.sql, SETTLE_MS);
  await provider.silence();
  // What it told last.
  if (unsettled.length === 0) unsettled.push(...(await settle(database.sql, SETTLE_MS)));
  const settledMs = Math.round(performance.now() - beganMs);
  say(`${at()} at rest after ${settledMs} ms`);
  const replays = await load.replayAll();
  const snapshot = await takeSnapshot(database.sql, provider.control, provider.logs);
  const reviews = openReviews(snapshot);
  const logs = readLogs(system.morgue.logs);
  const { seen } = load;
  return {
    faults: [
      // The money first.
      ...providerFaults(snapshot),
      ...answerFaults(seen, snapshot),
      ...replays,
      ...(await ledgerFaults(database.sql)),
      ...bookFaults(snapshot),
      ...reviews.filter(({ isExplained }) => !isExplained).map(({ what }) => what),
      ...eventFaults(snapshot, receiver),
      ...unsettled.map((what) => `not at rest: ${what}`),
      ...wireFaults(snapshot, system.thawed),
      ...logs.faults,
      ...(await comparisonFaults(system, new Date(begunAt), reviews)),
      ...(await examinationFaults(system)),
    ],
    payments: counted(snapshot.payments.map(({ status }) => status)),
    effects: effectsOf(snapshot),
    events: snapshot.outbox.length,
    answers: seen.answered,
    refusals: Object.fromEntries(seen.refusals),
    broken: seen.broken,
    settledMs,
    longestPaymentMs: snapshot.longestPaymentMs,
    reviews: reviews.map(({ what }) => what),
    errorsLogged: Object.fromEntries(logs.errors),
  };
}

function effectsOf(seen: Snapshot): Record<string, number> {
  const charges = seen.objects.reduce((sum, { successful_charges: count }) => sum + count, 0);
  const ended = seen.payments.filter(({ capture_method: method }) => method === "manual");
  return {
    charges,
    captures: ended.filter(({ status }) => status === "succeeded").length,
    cancels: ended.filter(({ status }) => status === "canceled").length,
    ...counted(seen.refunds.map(({ status }) => `refunds ${status}`)),
  };
}

function counted(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names.toSorted()) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

function describe({ name, at: which, awayMs }: Blow): string {
  return `${name.replaceAll("_", " ")} (${String(which + 1)}, ${String(awayMs)} ms)`;
}

function at(): string {
  return new Date().toISOString().slice(11, 23);
}
