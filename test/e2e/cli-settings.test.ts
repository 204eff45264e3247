import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { packageRoot } from "../../src/lib/package-root.js";
import { type Environment, run } from "../support/processes.js";
import { System } from "../support/system.js";

/** A value that each setting must refuse. Every setting of src/config.ts has its line here. */
const MALFORMED: Environment = {
  PORT: "65536",
  HOST: "no such host",
  ADMIN_PORT: "-1",
  ADMIN_HOST: "no such host",
  DATABASE_URL: "mysql://127.0.0.1/pawl",
  DATABASE_POOL_MAX: "0",
  DATABASE_PREPARE: "perhaps",
  STRIPE_SECRET_KEY: "pk_test_publishable",
  STRIPE_API_BASE: "http://127.0.0.1:12111/v1",
  PROVIDER_TIMEOUT_MS: "20s",
  ATTEMPT_LEASE_MS: "1.5",
  ATTEMPT_RETRY_BUDGET_MS: "0",
  PROVIDER_KEY_LIFETIME_MS: "-5",
  UNKNOWN_REVIEW_AFTER_MS: "1e3",
  IDEMPOTENCY_RETENTION_HOURS: "0",
  DEFAULT_WAIT_MS: "30001",
  RECONCILE_INTERVAL_MS: "often",
  PURGE_INTERVAL_MS: "0x10",
  PURGE_BATCH_SIZE: "0",
  POLL_INTERVAL_MS: "1",
  RETRY_FIRST_MS: "0",
  RETRY_MOST_MS: "0",
  FOLLOW_FIRST_MS: "0",
  FOLLOW_MOST_MS: "0",
  WORKER_CONCURRENCY: "0",
  RATE_LIMIT_PER_SECOND: "-1",
  REQUEST_BODY_TIMEOUT_MS: "1",
  SHUTDOWN_GRACE_MS: "soon",
  CUSTOMER_ACTION_EXPIRY_MS: "0",
  PROVIDER_EVENT_INTERVAL_MS: "0",
  PROVIDER_EVENT_MOST_TRIES: "0",
  PROVIDER_EVENT_RETENTION_HOURS: "0",
  RELAY_INTERVAL_MS: "0",
  WEBHOOK_INTERVAL_MS: "0",
  WEBHOOK_TIMEOUT_MS: "0",
  WEBHOOK_RETRY_SCHEDULE_MS: "5s",
  WEBHOOK_SECRET_OVERLAP_MS: "-1",
  WEBHOOK_DISABLE_AFTER_MS: "never",
  WEBHOOK_CONCURRENCY: "0",
  WEBHOOK_ALLOW_PRIVATE_TARGETS: "maybe",
  DELIVERY_RETENTION_HOURS: "0",
  LEDGER_INTERVAL_MS: "0",
  DOCTOR_INTERVAL_MS: "0",
  PAWL_EVENTS_NATS_URL: "http://127.0.0.1:4222",
  RECONCILE_LISTS_INTERVAL_MS: "0",
  RECONCILE_WINDOW_HOURS: "0",
  RECONCILE_LAG_MS: "soon",
  DATABASE_CHECK_INTERVAL_MS: "0",
  WORKERS: "attempts,nonsense",
  LOG_LEVEL: "loud",
  PAWL_PROBES: "after_claim=explode",
};
/** Any text may be a folder's name, or a secret. */
const NEVER_MALFORMED = ["PAWL_DATA_DIR", "STRIPE_WEBHOOK_SECRET"];

describe("settings", () => {
  let system: System;

  beforeAll(async () => {
    system = await System.start();
  });
  afterAll(() => system.drop());

  it("are all tried here", () => {
    const source = readFileSync(join(packageRoot(), "src/config.ts"), "utf8");
    const names = [...source.matchAll(/^ {2}([A-Z][A-Z_]+): /gm)].map(([, name]) => name ?? "");
    expect(names.length).toBeGreaterThan(20);
    expect([...Object.keys(MALFORMED), ...NEVER_MALFORMED].sort()).toEqual(names.sort());
  });

  it.each(Object.entries(MALFORMED))(
    "%s=%s stops the process before it listens, in one line that names it",
    async (name, value) => {
      const stopped = await run(["serve", "--json"], { env: system.settings({ [name]: value }) });
      expect(stopped.exit).toEqual({ code: 1, signal: null });
      expect(stopped.stdout).toBe("");
      expect(lastLines(stopped.stderr)).toMatch(new RegExp(`^pawl: ${name}: .+\n$`));
    },
  );

  it.each([
    ["ATTEMPT_LEASE_MS", { ATTEMPT_LEASE_MS: "1999", PROVIDER_TIMEOUT_MS: "1000" }],
    ["PAWL_PROBES", { PAWL_PROBES: "after_claim=kill", STRIPE_SECRET_KEY: "sk_live_endtoend" }],
    ["STRIPE_SECRET_KEY", { STRIPE_SECRET_KEY: undefined }],
    ["DATABASE_URL", { DATABASE_URL: "postgres://127.0.0.1:1/nobody" }],
  ])("that cannot stand together or are missing are named: %s", async (name, env) => {
    const stopped = await run(["serve", "--json"], { env: system.settings(env) });
    expect(stopped.exit).toEqual({ code: 1, signal: null });
    expect(stopped.stdout).toBe("");
    expect(lastLines(stopped.stderr)).toMatch(new RegExp(`^pawl: ${name}: .+\n$`));
  });

  it("that name a port in use are told in one line", async () => {
    const api = await system.api();
    const port = new URL(api.url).port;
    const second = await run(["serve", "--json"], { env: system.settings({ PORT: port }) });
    expect(second.exit.code).toBe(1);
    expect(lastLines(second.stderr)).toMatch(/^pawl: PORT: .+\n$/);
    expect((await api.client.get("/v1/payments")).status).toBe(200);
  });

  it("that are blank count as unset", async () => {
    const api = await system.api({ DEFAULT_WAIT_MS: " ", WORKERS: "", LOG_LEVEL: "" });
    expect((await api.client.get("/v1/payments")).status).toBe(200);
  });
});

/** Without the log's own lines. */
function lastLines(stderr: string): string {
  return stderr
    .split("\n")
    .filter((line) => !line.startsWith("{"))
    .join("\n");
}
