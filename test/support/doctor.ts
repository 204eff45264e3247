import postgres from "postgres";
import { readConfig } from "../../src/config.js";
import type { Violation } from "../../src/domain/doctor.js";
import { createLogger } from "../../src/lib/log.js";
import { examine, timeBefore } from "../../src/operations/doctor.js";
import type { DoctorDeps } from "../../src/operations/doctor-examination.js";
import { openStore, type Store } from "../../src/wire.js";
import { authorized, cancel, capture, paid, refund } from "./effects.js";
import { givenColumns } from "./given-columns.js";
import { documentOf, type Harness, pay, startHarness, until } from "./harness.js";
import { createTestDatabase } from "./test-database.js";

const HOUR_MS = 3_600_000;

/** What an examination of everything finds. */
export async function everythingBroken(deps: DoctorDeps): Promise<Violation[]> {
  const { broken } = await examine(deps, { since: null });
  return broken.map(({ violation }) => violation);
}

/** What one of the last hour finds, and of what is open. */
export async function brokenLately(deps: DoctorDeps): Promise<Violation[]> {
  const { broken } = await examine(deps, { since: await timeBefore(deps, HOUR_MS) });
  return broken.map(({ violation }) => violation);
}

/** One of each way that a payment can go without waiting for anybody outside; ids by what became of it. */
export async function livesOf(harness: Harness, name: string) {
  const order = (what: string) => ({ merchant_order_id: `${name}-${what}` });
  const declined = pay(harness, { input: { payment_method: "pm_card_visa_chargeDeclined", ...order("no") } });
  const action = pay(harness, {
    input: { payment_method: "pm_card_threeDSecure2Required", return_url: "https://merchant.example/back" },
  });
  const sale = await paid(harness, { input: order("sale") });
  const refunded = await paid(harness, { input: order("refunded") });
  await Promise.all([refund(harness, refunded, 2_500), refund(harness, refunded, 500)]);
  const held = await authorized(harness, { input: order("held") });
  const captured = await authorized(harness, { input: order("captured") });
  await capture(harness, captured);
  const partly = await authorized(harness, { input: order("partly") });
  await capture(harness, partly, 6_000);
  await refund(harness, partly);
  const canceled = await authorized(harness, { input: order("canceled") });
  await cancel(harness, canceled);
  return {
    sale,
    refunded,
    held,
    captured,
    partly,
    canceled,
    declined: documentOf(await declined).id,
    action: documentOf(await action).id,
  };
}

export interface Lived {
  readonly tenantId: string;
  readonly lives: Awaited<ReturnType<typeof livesOf>>;
  readonly store: Store;
  /** As superuser, to whom no foreign key is in the way. */
  readonly admin: postgres.Sql;
  /** Every row as it was, whatever a test has made of them. */
  restore(): Promise<void>;
  drop(): Promise<void>;
}

const PATIENT = { PROVIDER_TIMEOUT_MS: "5000", ATTEMPT_LEASE_MS: "15000" };

/** A database in which payments of every kind have been made, and in which nothing runs any more. */
export async function livedInDatabase(): Promise<Lived> {
  const database = await createTestDatabase();
  const harness = await startHarness({ database, env: PATIENT });
  const lives = await livesOf(harness, "life");
  await until(
    "every entry counted and every object closed",
    () => harness.deps.db.sql<{ open: string }[]>`
      select (select count(*) from ledger_uncounted)
           + (select count(*) from attempts where state not in ('completed', 'following')) as open`,
    ([row]) => row?.open === "0",
  );
  await harness.pawl.drain(5_000);
  await harness.pawl.close();
  await harness.sandbox.stop();
  const admin = postgres(database.adminUrl, { max: 1, onnotice: () => undefined });
  const restore = await saveRows(admin);
  const store = await openStore(readConfig({}), database.url, createLogger({ level: "silent" }));
  return {
    tenantId: harness.caller.tenantId,
    lives,
    store,
    admin,
    restore,
    drop: async () => {
      await Promise.all([store.close(), admin.end()]);
      await database.drop();
    },
  };
}

/** Keeps every row in a schema beside; yields what puts them back. */
async function saveRows(admin: postgres.Sql): Promise<() => Promise<void>> {
  await admin`set session_replication_role = replica`;
  await admin`create schema saved`;
  const tables = await admin<
    { name: string }[]
  >`select tablename as name from pg_tables where schemaname = 'public'`;
  const names = tables.map(({ name }) => name);
  for (const name of names)
    await admin`create table ${admin(`saved.${name}`)} as table ${admin(`public.${name}`)}`;
  return async () => {
    await admin`truncate ${admin(names.map((name) => `public.${name}`))}`;
    for (const name of names) {
      const columns = admin.unsafe(await givenColumns(admin, name));
      await admin`
        insert into ${admin(`public.${name}`)} (${columns}) select ${columns} from ${admin(`saved.${name}`)}`;
    }
  };
}
