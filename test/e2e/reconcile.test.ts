import { spawn } from "node:child_process";
import { execPath } from "node:process";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { VISA } from "../support/api-client.js";
import { describeWithFaults } from "../support/e2e-target.js";
import { RealProcess, run } from "../support/processes.js";
import { type Api, type System, startFaultySystem, untilStatus } from "../support/system.js";
import { until } from "../support/until.js";

/** Objects count whole seconds; what is younger than the lag is not compared. */
const SECOND_MS = 1_100;
const LAG_MS = 200;

interface Report {
  readonly run: { readonly id: string; readonly state: string; readonly objects: number };
  readonly counts: { readonly open: number; readonly by_kind: Readonly<Record<string, number>> };
  readonly findings: readonly { readonly kind: string; readonly object_id: string; readonly state: string }[];
  readonly recovering?: boolean;
  readonly since?: string;
}

describeWithFaults("comparing with the provider by the command line", () => {
  let system: System;
  let api: Api;
  let objectIds: string[];
  beforeAll(async () => {
    system = await startFaultySystem({ env: { RECONCILE_LAG_MS: String(LAG_MS), LOG_LEVEL: "error" } });
    api = await system.api();
    await system.worker({ WORKERS: "attempts,provider-events" });
    const paid = await Promise.all([1, 2, 3].map(() => api.client.pay(VISA)));
    objectIds = paid.map(({ json }) => String(json.provider_payment_id));
    const since = Date.now();
    await until(
      "the lag",
      () => Date.now() - since,
      (ms) => ms > LAG_MS + SECOND_MS,
    );
  });
  afterAll(async () => {
    await system.crashWorkers();
    await api.process.crash();
    await system.drop();
  });

  const pawl = (...args: readonly string[]) => run(args, { env: system.settings() });
  const first = () => objectIds[0] ?? "";

  describe("pawl reconcile", () => {
    it("exits 0 and says so while nothing differs", async () => {
      const { exit, stdout, stderr } = await pawl("reconcile");
      expect({ code: exit.code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(stdout).toContain("No differences.");
    });

    it("says nothing of a reader that has gone, and exits as it would have", async () => {
      const env = { PATH: process.env["PATH"], ...system.settings() };
      const child = spawn(execPath, ["dist/src/cli/main.js", "reconcile"], {
        env,
        stdio: ["ignore", "pipe", "pipe"],
      });
      child.stdout.destroy();
      const said: Buffer[] = [];
      child.stderr.on("data", (part: Buffer) => said.push(part));
      const code = await new Promise((resolve) => child.once("close", resolve));
      expect([code, Buffer.concat(said).toString()]).toEqual([0, ""]);
    });

    it("exits 3 while a difference is open, with exact counts and both sides in one JSON document", async () => {
      await system.control.patchPaymentIntent(first(), { amount: 999 });
      const { exit, stdout } = await pawl("reconcile", "--from", "2026-01-01T00:00:00Z", "--json");
      expect(exit.code).toBe(3);
      const report = JSON.parse(stdout) as Report;
      expect(report).toMatchObject({
        run: { state: "completed", trigger: "command", from: "2026-01-01T00:00:00.000Z" },
        counts: { open: 1, repaired: 0, gone: 0, by_kind: { amount_differs: 1 } },
        findings: [
          {
            kind: "amount_differs",
            object_id: first(),
            state: "open",
            ours: { amount: VISA.amount, currency: "usd" },
            theirs: { amount: 999, currency: "usd" },
          },
        ],
        unfinished: { open_reviews: 1 },
      });
    });

    it("prints a row a difference as CSV, with decimals, and a table for people", async () => {
      const csv = await pawl("reconcile", "--csv");
      expect(csv.exit.code).toBe(3);
      const [header = "", row = "", ...rest] = csv.stdout.split("\r\n");
      expect(header.split(",").slice(0, 4)).toEqual(["kind", "state", "object_id", "payment_id"]);
      expect(row).toMatch(new RegExp(`^amount_differs,open,${first()},pay_.*,9\\.99,usd,usd,`));
      expect(rest).toEqual([""]);
      const people = await pawl("reconcile");
      expect(people.stdout).toMatch(/^KIND +STATE +OBJECT +PAYMENT +OURS +THEIRS +WHAT$/m);
      expect(people.stdout).toContain("9.99 usd");
    });

    it("compares no further than the window it is given", async () => {
      const { stdout } = await pawl("reconcile", "--from", "2020-01-01", "--to", "2020-01-02", "--json");
      expect((JSON.parse(stdout) as Report).run.objects).toBe(0);
    });

    it("says up to when it compares where that is earlier than it was told to", async () => {
      const { stdout, stderr } = await pawl("reconcile", "--to", "2030-01-01", "--json");
      const { run: compared } = JSON.parse(stdout) as { run: { to: string } };
      expect(Date.parse(compared.to)).toBeLessThan(Date.now());
      expect(stderr).toBe(
        `pawl: nothing later than RECONCILE_LAG_MS ago is compared: ${compared.to} is used for --to\n`,
      );
    });

    it("exits 0 again once nothing differs any more", async () => {
      await system.control.patchPaymentIntent(first(), { amount: VISA.amount });
      const { exit, stdout } = await pawl("reconcile", "--json");
      expect(exit.code).toBe(0);
      expect((JSON.parse(stdout) as Report).findings).toMatchObject([{ object_id: first(), state: "gone" }]);
    });

    it.each(["reconcile", "recover"])("%s --help tells what it is for", async (command) => {
      const { exit, stdout } = await pawl(command, "--help");
      expect(exit.code).toBe(0);
      expect(stdout).toContain(`Usage: pawl ${command}`);
    });

    it.each([
      ["reconcile", "--from", "yesterday"],
      ["reconcile", "--from", "2026-02-30T00:00:00Z"],
      ["reconcile", "--json", "--csv"],
      ["reconcile", "--from", "2026-01-02", "--to", "2026-01-01"],
      ["recover"],
      ["recover", "--since", "a while ago"],
      ["recover", "--since", "2099-01-01T00:00:00Z"],
      ["recover", "--since", "2026-01-01T02:00:00"],
      ["recover", "--done"],
      ["recover", "--done", "--reason", "x", "--since", "2026-01-01"],
    ])("%s %s %s is wrong usage: exit 2, one line, nothing on stdout", async (...args) => {
      const { exit, stdout, stderr } = await pawl(...args);
      expect(exit.code).toBe(2);
      expect(stdout).toBe("");
      expect(stderr.trim().split("\n")).toHaveLength(1);
    });
  });

  it("killed on a page, is gone on with by a worker", async () => {
    const env = system.settings({
      PAWL_PROBES: "after_page_committed=kill",
      ATTEMPT_LEASE_MS: "1000",
      PROVIDER_TIMEOUT_MS: "500",
    });
    const killed = await run(["reconcile"], { env });
    expect(killed.exit.signal).toBe("SIGKILL");
    const sql = postgres(system.databaseUrl, { max: 1, fetch_types: false });
    try {
      const left = () => sql<{ id: string }[]>`select id from reconciliation_runs where state = 'running'`;
      expect(await left()).toHaveLength(1);
      await system.worker({ WORKERS: "comparison", RECONCILE_INTERVAL_MS: "100" });
      await until("an end of every run", left, (runs) => runs.length === 0);
      const failed = await sql`select id from reconciliation_runs where state <> 'completed'`;
      expect(failed).toEqual([]);
    } finally {
      await sql.end();
    }
  });

  describe("pawl recover", () => {
    it("goes through everything since then, and ends by itself", async () => {
      const { exit, stdout } = await pawl("recover", "--since", "2026-01-01T00:00:00Z", "--json");
      expect(exit.code).toBe(0);
      expect(JSON.parse(stdout) as Report).toMatchObject({
        run: { state: "completed", trigger: "recover", objects: expect.any(Number) as number },
        recovering: false,
      });
      const paid = await until(
        "payments again",
        () => api.client.pay(VISA),
        ({ status }) => status === 201,
      );
      expect(paid.json.status).toBe("succeeded");
    });

    it("begins no later than the data tells of, and says from when on", async () => {
      const asked = new Date(Date.now() - 1_000);
      const { exit, stdout, stderr } = await pawl("recover", "--since", asked.toISOString(), "--json");
      expect(exit.code, stderr).toBe(0);
      const report = JSON.parse(stdout) as Report;
      // Everything here is younger than an hour.
      expect(Date.parse(report.since ?? "")).toBeLessThan(asked.getTime() - 3_500_000);
      expect(report.run.objects).toBeGreaterThanOrEqual(objectIds.length);
      expect(stderr).toBe(
        `pawl: --since is later than what the data surely tells of: ${report.since} is used\n`,
      );
    });

    it("says what it waits for also where it prints one JSON document", async () => {
      await system.crashWorkers();
      const { json } = await api.client.pay(VISA, { prefer: "respond-async" });
      const recovery = new RealProcess(["recover", "--since", "2026-01-01T00:00:00Z", "--json"], {
        env: system.settings(),
      });
      await until(
        "word of what it waits for",
        () => recovery.stderr,
        (said) => said !== "",
      );
      expect(recovery.stderr).toMatch(/^waiting until each open attempt has had an answer: .*`pawl worker`/);
      await system.worker({ WORKERS: "attempts,provider-events,comparison", RECONCILE_INTERVAL_MS: "100" });
      expect((await recovery.exited).code, recovery.stderr).toBe(0);
      expect(recovery.stderr.split("\n")).toHaveLength(2);
      await untilStatus(api.client, json.id ?? "", ["succeeded"]);
    });

    it("keeps sends back also where the provider is away and cannot say which account this is", async () => {
      const away = { STRIPE_API_BASE: "http://127.0.0.1:9", STRIPE_SECRET_KEY: "sk_test_rotated" };
      const env = system.settings(away);
      const { exit, stderr } = await run(["recover", "--since", "2026-01-01T00:00:00Z"], { env });
      expect(exit.code).toBe(1);
      expect(stderr).toContain("which account");
      const ended = await pawl("recover", "--done", "--reason", "a drill", "--json");
      expect(JSON.parse(ended.stdout)).toMatchObject({ recovering: false });
    });

    it("exits 1 and names on stderr what could not be compared, as reconcile does, where all else is the same", async () => {
      await system.control.addFault({
        match: { call: "disputes.list" },
        times: null,
        fault: { type: "error", status: 403 },
      });
      const compared = await pawl("reconcile", "--json");
      const recovered = await pawl("recover", "--since", "2026-01-01T00:00:00Z", "--json");
      await system.control.clearFaults();
      for (const { exit, stdout, stderr } of [compared, recovered]) {
        expect(exit.code).toBe(1);
        expect(stderr).toBe("pawl: not compared, since the key may not read it: disputes\n");
        expect(JSON.parse(stdout) as Report).toMatchObject({
          run: { state: "completed" },
          counts: { open: 0, complete: true },
        });
      }
      expect(JSON.parse(recovered.stdout)).toMatchObject({ recovering: false });
    });

    it("prints a report whole that is longer than a pipe takes at once, and says where it does not show all", async () => {
      const MANY = 10_001;
      const sql = postgres(system.databaseUrl, { max: 1, fetch_types: false });
      try {
        // Of another account, so that this one's run does not look at them again.
        await sql`insert into reconciliation_runs (provider, id, account, trigger, window_from, window_to, phase, state)
                  values ('stripe', 'rec_other', 'acct_other', 'command', now(), now(), 'verify', 'completed')`;
        await sql`insert into reconciliation_findings (provider, kind, object_id, state, detail, first_run, last_run)
                  select 'stripe', 'missing_here', 'pi_' || n, 'open', '', 'rec_other', 'rec_other'
                    from generate_series(1, ${MANY}::int) n`;
        const { exit, stdout, stderr } = await pawl("reconcile", "--json");
        expect(exit.code).toBe(3);
        expect(stderr).toMatch(/^pawl: there are more than .*differences/);
        expect(JSON.parse(stdout)).toMatchObject({ counts: { complete: false } });
      } finally {
        await sql`delete from reconciliation_findings where last_run = 'rec_other'`;
        await sql.end();
      }
    });

    it("has nothing to end by hand while none is under way", async () => {
      const { exit, stderr } = await pawl("recover", "--done", "--reason", "a drill");
      expect(exit.code).toBe(1);
      expect(stderr).toContain("no recovery is under way");
    });
  });
});
