import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createAdminApp } from "../../src/http/admin/admin-app.js";
import { createLogger } from "../../src/lib/log.js";
import { packageRoot } from "../../src/lib/package-root.js";
import { Doctor, type DoctorReport, type RoundLimits } from "../../src/operations/doctor.js";
import { everythingBroken, type Lived, livedInDatabase } from "../support/doctor.js";
import { makeCrowd } from "../support/doctor-crowd.js";
import { paid } from "../support/effects.js";
import { documentOf, pay, until, untilStatus } from "../support/harness.js";
import { useStage } from "../support/stage.js";

const stage = useStage();

interface Line {
  readonly level: string;
  readonly msg: string;
  readonly invariant?: string;
  readonly payment?: string;
}

const NO_PATROL = { pages: 0, share: 0 };
const WINDOW_ALONE = { windowPages: 400, patrol: NO_PATROL };
const OLD_PAYMENTS = 40;

/** Breaks a payment that the first round's window has, and no later one's: of some 10 minutes ago. */
async function brokenBefore({ admin, tenantId }: Lived): Promise<string> {
  await makeCrowd(admin, { tenantId, count: OLD_PAYMENTS, stepMs: 1_000, agoMs: 600_000, lives: "paid" });
  const [row] = await admin<{ id: string }[]>`
    update payments set refund_reserved = 7
     where id = (select max(id) from payments where created_at < now() - interval '5 minutes') returning id`;
  return row?.id ?? "";
}

function sqlRow(tenantId: string, merchantOrderId: string, paymentId: string) {
  return { tenant_id: tenantId, merchant_order_id: merchantOrderId, payment_id: paymentId };
}

/** A doctor, what it logs, and one that begins at once. */
function doctorOf({ store }: Pick<Lived, "store">, limits?: RoundLimits) {
  const lines: Line[] = [];
  const write = (line: string) => lines.push(JSON.parse(line) as Line);
  const log = createLogger({ level: "info", destination: { write } });
  const settings = { ...store.settings, doctorIntervalMs: 0 };
  const doctor = new Doctor({ ...store, log, settings }, limits === undefined ? {} : { limits });
  const round = async (): Promise<DoctorReport> => {
    const report = await doctor.round();
    if (report === null) throw new Error("the round was not made");
    return report;
  };
  return { round, lines };
}

describe("a doctor's rounds", () => {
  let lived: Lived;
  beforeAll(async () => {
    lived = await livedInDatabase();
  });
  afterEach(() => lived.restore());
  afterAll(() => lived.drop());

  test("tell what is broken once, count it for as long as it stands, and tell when it is whole again", async () => {
    const { round, lines } = doctorOf(lived);
    const { sale } = lived.lives;
    expect((await round()).broken).toEqual([]);
    await lived.admin`update payments set refund_reserved = 7 where id = ${sale}`;
    for (let rounds = 0; rounds < 3; rounds += 1) {
      expect((await round()).counts.get("refund_sums_differ")).toBe(1);
    }
    const told = lines.filter(({ level }) => level !== "info");
    expect(told.map(({ level, invariant, payment }) => [level, invariant, payment])).toEqual([
      ["error", "refund_sums_differ", sale],
    ]);
    await lived.admin`update payments set refund_reserved = 0 where id = ${sale}`;
    expect((await round()).counts.get("refund_sums_differ")).toBe(0);
    expect(lines.map(({ level, msg }) => [level, msg]).at(-1)).toEqual(["warn", "invariant holds again"]);
  });

  test("still see what is broken when their window has passed it", async () => {
    const id = await brokenBefore(lived);
    const { round } = doctorOf(lived, WINDOW_ALONE);
    expect((await round()).counts.get("refund_sums_differ")).toBe(1);
    const again = await round();
    expect(again.looked.payment).toBeLessThan(OLD_PAYMENTS);
    expect(again.broken.map(({ violation }) => violation.paymentId)).toEqual([id]);
  });

  test("meet in time what no window leads to", async () => {
    const row = sqlRow(lived.tenantId, "order-of-nobody", lived.lives.captured);
    await lived.admin`insert into order_ids ${lived.admin(row)}`;
    const countsAfter = async (limits: RoundLimits) => {
      const { round } = doctorOf(lived, limits);
      const counts: number[] = [];
      for (let rounds = 0; rounds < 8; rounds += 1) {
        counts.push((await round()).counts.get("order_id_disagrees") ?? 0);
      }
      return counts;
    };
    expect(new Set(await countsAfter(WINDOW_ALONE))).toEqual(new Set([0]));
    const counts = await countsAfter({ windowPages: 1, patrol: { pages: 1, share: 0 } });
    // Found by the fifth page of the patrol, and known from then on.
    expect(counts).toEqual([0, 0, 0, 0, 1, 1, 1, 1]);
  });

  test("that are cut off say so, and the next one goes on from there", async () => {
    const crowd = {
      tenantId: lived.tenantId,
      count: 600,
      stepMs: 1_000,
      agoMs: 1_000,
      lives: "paid" as const,
    };
    await makeCrowd(lived.admin, crowd);
    const { round, lines } = doctorOf(lived, { windowPages: 1, patrol: NO_PATROL });
    const reports: DoctorReport[] = [];
    do reports.push(await round());
    while (reports.at(-1)?.isComplete === false && reports.length < 20);
    expect(reports.length).toBeGreaterThan(4);
    expect(reports.at(-1)?.isComplete).toBe(true);
    expect(new Set(reports.map(({ since }) => since?.getTime())).size).toBe(1);
    expect(lines.filter(({ level }) => level === "warn")).toHaveLength(reports.length - 1);
    expect(reports.flatMap(({ broken }) => broken)).toEqual([]);
    const looked = reports.reduce((sum, report) => sum + report.looked.event, 0);
    expect(looked).toBeGreaterThanOrEqual(2 * crowd.count);
  });

  test("lose nothing of what they had seen when one is cut off by the database", async () => {
    const id = await brokenBefore(lived);
    const database = { isAway: true };
    const sql = new Proxy(lived.store.db.sql, {
      apply: (target, self, args: [string | readonly string[], ...unknown[]]) => {
        const isEventPage = [args[0]].flat().join("").includes("o.id, o.payment_id from outbox o");
        if (database.isAway && isEventPage) throw new Error("away");
        return Reflect.apply(target, self, args) as unknown;
      },
    });
    const db = { ...lived.store.db, sql };
    const { round, lines } = doctorOf({ ...lived, store: { ...lived.store, db } }, WINDOW_ALONE);
    await expect(round()).rejects.toThrow("away");
    database.isAway = false;
    const report = await round();
    expect(report.looked.payment).toBeLessThan(OLD_PAYMENTS);
    expect(report.broken.map(({ violation }) => violation.paymentId)).toEqual([id]);
    expect(lines.map(({ level, payment }) => [level, payment])).toEqual([["error", id]]);
  });
});

test("an attempt that a clock has put years ahead goes on when it is made due as docs/doctor.md tells", async () => {
  const harness = await stage.start({});
  const { sql } = harness.deps.db;
  const { id } = documentOf(
    await pay(harness, {
      input: { payment_method: "pm_card_threeDSecure2Required", return_url: "https://merchant.example/back" },
    }),
  );
  const [ahead] = await until(
    "the attempt in nobody's hands",
    () => sql<{ provider_payment_id: string }[]>`
      update attempts set due_at = now() + interval '10 years', lease_expires_at = now() + interval '10 years'
       where payment_id = ${id} and lease_expires_at is null and state = 'following' returning provider_payment_id`,
    (rows) => rows.length === 1,
  );
  await harness.sandbox.control.authenticate(ahead?.provider_payment_id ?? "", "complete");
  const named = (await everythingBroken(harness.deps)).map(({ invariant, paymentId }) => [
    invariant,
    paymentId,
  ]);
  expect(named).toEqual([["attempt_due_too_late", id]]);
  const page = readFileSync(join(packageRoot(), "docs/doctor.md"), "utf8");
  await sql.unsafe(/^ {4}(update attempts [^;]+;)$/m.exec(page)?.[1] ?? "");
  await untilStatus(harness, id, "succeeded");
  expect(await everythingBroken(harness.deps)).toEqual([]);
});

test("the doctor worker shows on /metrics what is broken, and how old its last look is", async () => {
  const harness = await stage.start({
    workers: ["attempts", "ledger", "doctor"],
    env: { DOCTOR_INTERVAL_MS: "50" },
  });
  const { sql } = harness.deps.db;
  const scrape = async () => (await createAdminApp(harness.deps).request("/metrics")).text();
  const shows = (count: number) => (metrics: string) =>
    metrics.includes(`\npawl_invariant_violations{invariant="refund_sums_differ"} ${count}\n`);
  const id = await paid(harness);
  await until("a look that finds nothing", scrape, shows(0));
  await sql`update payments set refund_reserved = 7 where id = ${id}`;
  await until("a look that finds it", scrape, shows(1));
  await sql`update payments set refund_reserved = 0 where id = ${id}`;
  const metrics = await until("a look that finds it whole", scrape, shows(0));
  expect(metrics).toMatch(/^pawl_doctor_age_seconds \d/m);
});
