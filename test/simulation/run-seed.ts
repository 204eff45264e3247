import { replayAllProviderEvents } from "../../src/operations/replay-provider-event.js";
import type { Sql } from "../../src/store/db.js";
import { faultsAtTheEnd } from "./checks.js";
import { type Draw, drawSetting, HOUR_MS, MINUTE_MS } from "./draw.js";
import { really, simulatingHost } from "./host.js";
import { drawPlans } from "./plans.js";
import type { ProviderFlaws } from "./provider-model.js";
import { ACCOUNT, OTHER_ACCOUNT } from "./provider-objects.js";
import { Random } from "./random.js";
import type { SimulatedDatabase } from "./simulated-database.js";
import { settingsWith } from "./simulated-process.js";
import type { Weather } from "./weather.js";
import { World } from "./world.js";

export interface SeedOptions {
  readonly database: SimulatedDatabase;
  readonly flaws?: ProviderFlaws;
  /** In place of what the seed draws. */
  readonly weather?: Partial<Weather>;
  readonly payments?: number;
}

export interface SeedReport {
  readonly seed: number;
  /** As many as were asked for, in place of what the seed draws. */
  readonly payments?: number | undefined;
  /** A sentence each; none is the only right outcome. */
  readonly faults: readonly string[];
  /** What the seed has drawn, for a person. */
  readonly setting: string;
  readonly story: readonly string[];
  readonly digest: string;
  readonly counts: Readonly<Record<string, number>>;
}

/** What is left after that long is stuck. */
const LONGEST_MS = 120 * HOUR_MS;
const MOST_STEPS_A_PAYMENT = 100_000;
/** So often a person replays what was parked. */
const MOST_TIDIED = 4;
/** Longer than this without a step, and it is time to look at what is due. */
const PAUSE_MS = 20;

/** In every seed other than in production: fewer looks at what waits, and deliveries that are never given up. */
const SETTINGS: Readonly<Record<string, string>> = {
  FOLLOW_FIRST_MS: "5000",
  WEBHOOK_RETRY_SCHEDULE_MS: [1_000, 5_000, ...Array.from({ length: 200 }, () => 30_000)].join(),
  WEBHOOK_DISABLE_AFTER_MS: String(1_000 * HOUR_MS),
};

/** Runs one simulation to its end. The same seed, the same code: the same story. */
export async function runSeed(
  seed: number,
  { database, flaws = {}, weather = {}, payments }: SeedOptions,
): Promise<SeedReport> {
  const setting = drawSetting(seed);
  const drawn = payments === undefined ? setting : { ...setting, payments };
  await database.reset();
  const world = new World({
    seed,
    database,
    settings: settingsWith({ ...SETTINGS, ...drawn.env }),
    weather: { ...drawn.weather, ...weather },
    habits: drawn.habits,
    plans: drawPlans(new Random(seed, "plans"), drawn.payments),
    flaws,
    tampering: drawn.tampering,
    restore: drawn.restore,
  });
  await simulatingHost(world.scheduler, new Random(seed, "product"), async () => {
    planStorm(world, drawn);
    await world.begin();
    await settle(world, drawn);
    // The next hour's: it tells what no event did.
    world.polling.wakeOnce("comparison", 65 * MINUTE_MS);
    await settle(world, drawn);
    await tidy(world, drawn, database.sql);
    world.merchants.askAgain();
    // A lost key that is sent again takes up what was left for it.
    if (drawn.restore !== null) world.polling.wakeOnce("comparison", 65 * MINUTE_MS);
    await settle(world, drawn);
    await tidy(world, drawn, database.sql);
    await endOther(world, drawn);
  });
  if (world.faults.length === 0) world.faults.push(...(await faultsAtTheEnd(world, database.sql)));
  return {
    seed,
    payments,
    faults: world.faults,
    setting: JSON.stringify(drawn),
    story: world.story.lines,
    digest: world.story.digest(),
    counts: await countsOf(world, database.sql),
  };
}

/** What happened, for whoever wonders whether it ever does. */
async function countsOf(world: World, sql: Sql): Promise<Readonly<Record<string, number>>> {
  const rows = await sql<{ what: string; rows: number }[]>`
    select 'review ' || reason || coalesce(' ended by ' || closed_by, ' open') as what, count(*)::int as rows
      from reviews group by 1
    union all
    select kind || ' ' || state, count(*)::int from reconciliation_findings group by 1
    union all
    select reason, count(*)::int from timeline
     where reason = 'recovered_without_row' or reason like '% is not possible: %' group by 1
    order by 1`;
  const lost = world.restore?.loss?.attempts.size;
  return {
    intents: world.model.intents.size,
    refunds: world.model.refunds.size,
    hours: world.scheduler.nowMs / HOUR_MS,
    decisions: world.people.decisions.length,
    ...(lost === undefined ? {} : { "attempts lost": lost }),
    ...Object.fromEntries(rows.map(({ what, rows: count }) => [what, count])),
  };
}

function planStorm(world: World, drawn: Draw): void {
  const { outages, nights, payouts, purges, comparisons, misconfigured, stormMs } = drawn;
  const { scheduler, polling } = world;
  for (const atMs of comparisons) polling.wakeOnce("comparison", atMs);
  for (const atMs of purges) polling.wakeOnce("reaper", atMs);
  for (const { atMs, forMs } of outages) {
    scheduler.plan(atMs, `the provider is down for ${forMs} ms`, () => {
      world.providerDownUntilMs = scheduler.nowMs + forMs;
    });
  }
  for (const { atMs, forMs } of nights) {
    scheduler.plan(atMs, `all is down for ${forMs} ms`, () => {
      world.nightUntilMs = scheduler.nowMs + forMs;
      world.killAll();
    });
  }
  for (const atMs of payouts)
    scheduler.plan(atMs, "the provider pays out", () => world.model.payOut(ACCOUNT));
  if (misconfigured !== null) {
    const { atMs, forMs } = misconfigured;
    scheduler.plan(atMs, null, () => world.redeploy(OTHER_ACCOUNT));
    scheduler.plan(atMs + forMs, null, () => world.redeploy(ACCOUNT));
  }
  const calmAtMs = Math.max(
    stormMs,
    ...outages.map((one) => one.atMs + one.forMs),
    ...nights.map((one) => one.atMs + one.forMs),
    ...(misconfigured === null ? [] : [misconfigured.atMs + misconfigured.forMs]),
  );
  scheduler.plan(calmAtMs + MINUTE_MS, "the storm is over", () => {
    world.isCalm = true;
  });
}

/** What was begun on another account is ended there, by processes that have its credential once more. */
async function endOther(world: World, drawn: Draw): Promise<void> {
  if (drawn.misconfigured === null) return;
  for (const account of [OTHER_ACCOUNT, ACCOUNT]) {
    world.redeploy(account);
    world.polling.wakeOnce("comparison", 65 * MINUTE_MS);
    world.asOperator("pawl events replay", (deps) => replayAllProviderEvents(deps));
    await settle(world, drawn);
  }
}

/** Where rows or objects were changed, events may have waited in vain for what was taken in later: a person replays them. */
async function tidy(world: World, drawn: Draw, sql: Sql): Promise<void> {
  const isChanged = drawn.restore !== null || Object.values(drawn.tampering).some((chance) => chance > 0);
  for (let times = 0; isChanged && times < MOST_TIDIED; times += 1) {
    const parked = await really(() => sql`select from provider_events where state = 'parked'`);
    if (parked.length === 0) return;
    world.asOperator("pawl events replay", (deps) => replayAllProviderEvents(deps));
    await settle(world, drawn);
  }
}

/** Until nothing is left to happen by itself. */
async function settle(world: World, drawn: Draw): Promise<void> {
  const { scheduler, polling } = world;
  for (let steps = 0; ; steps += 1) {
    if (world.faults.length > 0) return;
    const next = scheduler.nextAtMs();
    if (next === null || next > scheduler.nowMs + PAUSE_MS) await polling.look();
    if (!(await scheduler.step())) return;
    if (scheduler.nowMs > LONGEST_MS || steps > drawn.payments * MOST_STEPS_A_PAYMENT) {
      world.fault(
        `there is no end of it: ${String(steps)} steps, ${String(scheduler.nowMs)} ms, ${drawn.payments} payments`,
      );
      return;
    }
  }
}
