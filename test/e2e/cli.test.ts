import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { newKey, VISA } from "../support/api-client.js";
import { describeWithFaults } from "../support/e2e-target.js";
import { RealProcess, run } from "../support/processes.js";
import type { System } from "../support/system.js";
import { type Api, startFaultySystem } from "../support/system.js";
import { until } from "../support/until.js";

const COMMANDS = [
  "",
  "start",
  "serve",
  "worker",
  "migrate",
  "tenants",
  "tenants create",
  "tenants list",
  "keys",
  "keys create",
  "keys list",
  "keys revoke",
  "payments",
  "payments show",
  "reviews",
  "reviews list",
  "reviews show",
  "reviews resolve",
  "events",
  "events list",
  "events replay",
  "reconcile",
  "findings",
  "findings list",
  "findings accept",
  "recover",
  "doctor",
  "purge",
  "sandbox",
  "sandbox faults",
  "sandbox faults add",
  "sandbox faults list",
  "sandbox faults clear",
  "sandbox clock",
  "sandbox clock show",
  "sandbox clock advance",
  "sandbox clock set",
  "sandbox log",
  "sandbox release",
];

const WRONG_USAGE = [
  "nonsense",
  "tenants nonsense",
  "tenants create",
  "tenants create --name",
  "tenants list extra",
  "keys create",
  "keys revoke",
  "payments show",
  "serve --nonsense",
  "purge extra",
  "migrate extra",
  "start extra",
  "worker extra",
  "doctor --all --since 1h",
  "doctor --since yesterday",
  "sandbox --port many",
  "sandbox --webhook-url http://127.0.0.1:1/",
  "sandbox faults add {",
  "sandbox log --call payment_intents.pay",
  "events replay",
  "events replay evt_1 --all",
  "keys create --tenant ten_1 --scopes payments:nonsense",
  "findings accept nonsense pi_1 --reason x",
  "findings accept missing_there pi_1 --reason x --provider nonsense",
  "findings list --provider nonsense",
  "findings list --provider Stripe",
  "reviews resolve rev_1 --as nonsense --reason x",
  "reviews resolve rev_1 --as dismiss --reason x --version latest",
];

describe("the command line", () => {
  it.each(COMMANDS)("pawl %s --help says what it does and exits 0", async (command) => {
    const help = await run([...words(command), "--help"]);
    expect([help.exit.code, help.stderr]).toEqual([0, ""]);
    expect(help.stdout).toMatch(/^Usage: pawl/);
  });

  it.each(WRONG_USAGE)("pawl %s is wrong usage: exit 2, said on stderr alone", async (command) => {
    const wrong = await run(words(command));
    expect(wrong.exit.code, wrong.stderr).toBe(2);
    expect(wrong.stdout).toBe("");
    expect(wrong.stderr).not.toBe("");
    expect(wrong.stderr).not.toContain("    at ");
  });
});

describeWithFaults("commands on a running system", () => {
  let system: System;
  let apis: readonly Api[];

  beforeAll(async () => {
    system = await startFaultySystem({
      env: { IDEMPOTENCY_RETENTION_HOURS: "0.0003", PURGE_INTERVAL_MS: "3600000" },
    });
    apis = [await system.api(), await system.api()];
    await system.worker();
  });
  afterAll(() => system.drop());

  const api = () => apis[0] as Api;
  const failing = (...args: string[]) => run(args, { env: system.settings() });

  it("lists tenants and keys without their secrets", async () => {
    const tenants = await system.command<{ data: { id: string; name: string }[] }>("tenants", "list");
    expect(tenants.data.map(({ id, name }) => [id, name])).toEqual([[system.tenantId, "acme"]]);
    const listing = await failing("keys", "list", "--tenant", system.tenantId, "--json");
    const { data } = JSON.parse(listing.stdout) as {
      data: { tenant_id: string; revoked_at: null; scopes: string[] }[];
    };
    expect(data).toMatchObject([{ tenant_id: system.tenantId, revoked_at: null }]);
    expect(data[0]?.scopes).toContain("payments:write");
    expect(data[0]?.scopes).not.toContain("admin");
    expect(listing.stdout).not.toContain(system.secret.slice(-43));
  });

  it("revokes a key within seconds on every running process, for replays too", async () => {
    const made = await system.command<{ id: string; secret: string; scopes: string[] }>(
      "keys",
      "create",
      "--tenant",
      system.tenantId,
      "--scopes",
      "payments:read,payments:write",
    );
    expect(made.scopes).toEqual(["payments:read", "payments:write"]);
    const clients = apis.map((one) =>
      Object.assign(Object.create(one.client) as typeof one.client, { secret: made.secret }),
    );
    const key = newKey();
    for (const client of clients)
      expect((await client.pay(VISA, { key, prefer: "wait=10" })).status).toBe(201);

    const revoked = await system.command<{ id: string; revoked_at: string }>("keys", "revoke", made.id);
    expect(revoked.id).toBe(made.id);
    await until(
      "401 from every process",
      () => Promise.all(clients.map(async (client) => (await client.pay(VISA, { key })).status)),
      (statuses) => statuses.every((status) => status === 401),
      3_000,
    );
    const again = await system.command<{ revoked_at: string }>("keys", "revoke", made.id);
    expect(again.revoked_at).toBe(revoked.revoked_at);
  });

  it("shows a payment with its timeline, as the API does", async () => {
    const paid = await api().client.pay(VISA);
    const shown = await system.command<{
      status: string;
      tenant_id: string;
      timeline: { id: string; sent_at: string | null }[];
    }>("payments", "show", paid.json.id ?? "");
    expect([shown.status, shown.tenant_id]).toEqual(["succeeded", system.tenantId]);
    const timeline = await api().client.timeline(paid.json.id ?? "");
    expect(shown.timeline).toEqual(timeline);
    expect(shown.timeline.at(-1)?.sent_at).toMatch(/Z$/);
    const human = await failing("payments", "show", paid.json.id ?? "");
    expect(human.stdout).toContain("succeeded");
  });

  it("purges what has expired, and the key then names its payment", async () => {
    const key = newKey();
    const paid = await api().client.pay(VISA, { key });
    await until(
      "a key past its retention",
      () => system.command<{ purged: number }>("purge"),
      ({ purged }) => purged > 0,
    );
    const late = await until(
      "an expired key",
      () => api().client.pay(VISA, { key }),
      (answer) => answer.status !== 201,
    );
    expect([late.status, late.json.code, late.json.payment?.id]).toEqual([
      409,
      "idempotency_key_expired",
      paid.json.id,
    ]);
    const counts = await system.control.counts("payment_attempt_id");
    expect(Object.values(counts.by_metadata).map((one) => one.successful_charges)).toEqual(
      Object.values(counts.by_metadata).map(() => 1),
    );
  });

  it("lists open reviews", async () => {
    expect(await system.command<{ data: unknown[] }>("reviews", "list")).toEqual({ data: [] });
    await system.control.addFault({
      match: { call: "payment_intents.retrieve" },
      fault: { type: "error", status: 404, code: "resource_missing" },
    });
    await system.control.addFault({
      match: { call: "payment_intents.confirm" },
      fault: { type: "reset", effect: "none" },
    });
    const held = await api().client.pay(VISA, { prefer: "wait=5" });
    const seen = await until(
      "an open review, or its end",
      () => api().client.timeline(held.json.id ?? held.json.payment?.id ?? ""),
      (entries) => entries.some((entry) => entry.to === "needs_review"),
    );
    expect(seen.length).toBeGreaterThan(2);
    await until(
      "the fact that closes it",
      () => api().client.payment(held.json.id ?? ""),
      (payment) => payment.status === "succeeded",
    );
    expect(await system.command<{ data: unknown[] }>("reviews", "list")).toEqual({ data: [] });
  });

  it("says in one line on stderr what it cannot do, and exits 1", async () => {
    for (const args of [
      ["keys", "create", "--tenant", "ten_none", "--json"],
      ["keys", "revoke", "key_none", "--json"],
      ["keys", "list", "--tenant", "ten_none", "--json"],
      ["reviews", "list", "--tenant", "ten_none", "--json"],
      ["payments", "show", "pay_none", "--json"],
    ]) {
      const failed = await failing(...args);
      expect([args.join(" "), failed.exit.code, failed.stdout]).toEqual([args.join(" "), 1, ""]);
      expect(failed.stderr).toMatch(/^pawl: .+\n$/);
    }
  });

  it("prints one JSON document for each long-running command, and nothing else", async () => {
    for (const command of ["serve", "worker"]) {
      const started = new RealProcess([command, "--json"], { env: system.settings() });
      await started.firstLine();
      expect((await started.stop()).code).toBe(0);
      expect(started.stdout.trimEnd().split("\n")).toHaveLength(1);
    }
    expect(await system.command<{ migrated: boolean }>("migrate")).toEqual({ migrated: true });
  });
});

function words(command: string): string[] {
  return command === "" ? [] : command.split(" ");
}
