import postgres from "postgres";
import { afterAll, beforeAll, expect, it } from "vitest";
import { DECLINED, VISA } from "../support/api-client.js";
import { describeWithFaults } from "../support/e2e-target.js";
import { run } from "../support/processes.js";
import { type Api, type System, startFaultySystem, untilEnded } from "../support/system.js";
import { until } from "../support/until.js";

interface Document {
  readonly healthy: boolean;
  readonly looked_at: { readonly payment: number };
  readonly violations: readonly { readonly invariant: string; readonly payment_id: string | null }[];
}

describeWithFaults("pawl doctor", () => {
  let system: System;
  let api: Api;
  let paymentId: string;
  beforeAll(async () => {
    system = await startFaultySystem();
    api = await system.api();
    await system.worker({ DOCTOR_INTERVAL_MS: "200" });
    const paid = await api.client.pay(VISA, { prefer: "wait=10" });
    paymentId = paid.json.id ?? "";
    const declined = await api.client.pay(DECLINED, { prefer: "wait=10" });
    await untilEnded(api.client, declined.json.payment?.id ?? "");
  });
  afterAll(async () => {
    await api.process.stop();
    await system.crashWorkers();
    await system.drop();
  });

  const doctor = (...args: string[]) => run(["doctor", ...args], { env: system.settings() });
  const change = async (reserved: number) => {
    const sql = postgres(system.databaseUrl, { max: 1 });
    await sql`update payments set refund_reserved = ${reserved} where id = ${paymentId}`;
    await sql.end();
  };

  it("finds a healthy system healthy, of the last day and of all there is: exit 0", async () => {
    for (const args of [["--json"], ["--all", "--json"], ["--since", "1h", "--json"]]) {
      const found = await doctor(...args);
      expect([found.exit.code, found.stderr]).toEqual([0, ""]);
      expect(JSON.parse(found.stdout)).toMatchObject({ healthy: true, violations: [] });
      expect((JSON.parse(found.stdout) as Document).looked_at.payment).toBeGreaterThanOrEqual(2);
    }
    expect((await doctor()).stdout).toContain("Nothing is broken.");
  });

  it("names what is broken and exits 3, and so does its worker in its log, once", async () => {
    const { worker } = { worker: await system.worker({ WORKERS: "doctor", DOCTOR_INTERVAL_MS: "100" }) };
    await change(7);
    const told = () =>
      worker.process.stderr.split("\n").filter((line) => line.includes('"invariant broken')).length;
    await until(
      "a line in the log",
      async () => told(),
      (lines) => lines === 1,
    );
    const found = await doctor("--json");
    expect(found.exit.code).toBe(3);
    expect((JSON.parse(found.stdout) as Document).violations).toMatchObject([
      { invariant: "refund_sums_differ", payment_id: paymentId },
    ]);
    const forPeople = await doctor("--all");
    expect(forPeople.exit.code).toBe(3);
    expect(forPeople.stdout).toMatch(new RegExp(`refund_sums_differ +${paymentId}`));
    await change(0);
    await until(
      "a line that it is whole",
      async () => worker.process.stderr,
      (log) => log.includes("invariant holds again"),
    );
    expect(told()).toBe(1);
    expect((await doctor()).exit.code).toBe(0);
  });

  it("prints how its statements run here", async () => {
    const plan = await doctor("--plan");
    expect([plan.exit.code, plan.stderr]).toEqual([0, ""]);
    expect(plan.stdout).toContain("-- books");
    expect(plan.stdout).toContain("Index Scan using");
    const { plans } = await system.command<{ plans: { name: string; plan: string[] }[] }>("doctor", "--plan");
    expect(plans.map(({ name }) => name)).toContain("overdue attempts");
  });

  it.each(["0m", "00d", "2999-01-01T00:00:00Z", "yesterday"])(
    "refuses --since %s, which is not in the past, in one line: exit 2",
    async (since) => {
      const refused = await doctor("--since", since, "--json");
      expect([refused.exit.code, refused.stdout]).toEqual([2, ""]);
      expect(refused.stderr).toMatch(/^[^\n]*--since[^\n]*\n$/);
    },
  );

  it("says in one line that it could not look: exit 1", async () => {
    const env = system.settings({ DATABASE_URL: "postgres://127.0.0.1:1/nobody" });
    const blind = await run(["doctor", "--json"], { env });
    expect([blind.exit.code, blind.stdout]).toEqual([1, ""]);
    expect(blind.stderr).toMatch(/^pawl: DATABASE_URL: .+\n$/);
  });
});
