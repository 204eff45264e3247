import postgres from "postgres";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { FaultRuleInput } from "../../src/sandbox/index.js";
import { describeWithFaults } from "../support/e2e-target.js";
import { startLoad } from "../support/load.js";
import { type Api, type System, startFaultySystem, type Worker } from "../support/system.js";
import { until } from "../support/until.js";

const CALLERS = 12;
/** Payments between two blows: enough that each of them finds work under way. */
const BETWEEN = 12;
const ROUNDS = 3;
const TEST_TIMEOUT_MS = 180_000;

const SENDS = ["payment_intents.create", "payment_intents.confirm"];
const QUESTIONS = ["payment_intents.retrieve", "payment_intents.list"];
const often = (
  call: readonly string[],
  fault: FaultRuleInput["fault"],
  probability = 0.04,
): FaultRuleInput => ({
  match: { call },
  times: null,
  probability,
  fault,
});
const FAULTS: readonly FaultRuleInput[] = [
  often(SENDS, { type: "reset", effect: "applied" }),
  often(SENDS, { type: "reset", effect: "none" }),
  // The caller hears nothing more, and the effect comes when others have already asked, or sent again.
  often(SENDS, { type: "reset", effect: "later", arrival: "in_network", effect_after_ms: 300 }),
  often(SENDS, { type: "reset", effect: "later", arrival: "executing", effect_after_ms: 300 }),
  often(SENDS, { type: "hang", effect: "later", arrival: "in_network", effect_after_ms: 1_500 }, 0.02),
  often(SENDS, { type: "stored_error", status: 500 }, 0.02),
  often(SENDS, { type: "error", status: 500, effect: "applied" }),
  often(SENDS, { type: "error", status: 429 }),
  often([...SENDS, ...QUESTIONS], { type: "garbage" }, 0.03),
  often(QUESTIONS, { type: "error", status: 503 }),
];

describeWithFaults("everything at once", () => {
  let system: System;
  let admin: postgres.Sql;

  beforeAll(async () => {
    system = await startFaultySystem({
      env: { PROVIDER_TIMEOUT_MS: "600", ATTEMPT_LEASE_MS: "1200", LOG_LEVEL: "warn" },
    });
    admin = postgres(system.adminUrl ?? "", { max: 1, onnotice: () => undefined });
  });
  afterAll(async () => {
    await admin.end();
    await system.drop();
  });

  it(
    "lost answers, late effects, killed processes and ended sessions leave one charge under each key",
    async () => {
      for (const fault of FAULTS) await system.control.addFault(fault);
      const apis: Api[] = [await system.api(), await system.api()];
      const workers: Worker[] = [await system.worker(), await system.worker()];
      const load = startLoad(
        apis.map((api) => api.client),
        CALLERS,
      );
      const blows = [
        async () => {
          await workers.shift()?.process.crash();
          workers.push(await system.worker());
        },
        async () => {
          const fallen = apis.shift() as Api;
          await fallen.process.crash();
          apis.push(await system.api({ PORT: new URL(fallen.url).port }));
        },
        () => admin`
          select pg_terminate_backend(pid) from pg_stat_activity
           where datname = current_database() and pid <> pg_backend_pid()`,
        async () => {
          await system.control.closeListener();
          await system.control.openListener();
        },
      ];
      for (let round = 0; round < ROUNDS; round += 1) {
        for (const blow of blows) {
          await load.more(BETWEEN);
          await blow();
        }
      }
      const ids = await load.finish();
      await system.control.clearFaults();
      await system.control.release();

      const open = () => admin`
        select p.id, p.status, a.state, a.wait_reason from payments p join attempts a on a.tenant_id = p.tenant_id and a.payment_id = p.id
         where a.state <> 'completed' or p.status not in ('succeeded', 'failed')`;
      await until("every payment ended", open, (rows) => rows.length === 0, 60_000);
      expect(new Set(load.refusals.map((answer) => answer.status)).has(500)).toBe(false);
      for (const process of [...apis, ...workers].map((one) => one.process))
        expect(process.exit, process.stderr).toBeNull();

      const paid = await admin`
        select p.id, a.provider_payment_id as object, a.idempotency_key as key, a.id as attempt
          from payments p join attempts a on a.tenant_id = p.tenant_id and a.payment_id = p.id where p.status = 'succeeded'`;
      expect(new Set(paid.map((row) => String(row["key"]))).size).toBe(paid.length);
      expect(paid.map((row) => String(row["id"])).sort()).toEqual([...ids].sort());
      const counts = await system.control.counts("payment_attempt_id");
      const charged = Object.entries(counts.by_metadata).filter(([, count]) => count.successful_charges > 0);
      expect(charged.filter(([, count]) => count.successful_charges !== 1)).toEqual([]);
      expect(charged.map(([attempt]) => attempt).sort()).toEqual(
        paid.map((row) => String(row["attempt"])).sort(),
      );
      expect(Object.keys(counts.by_payment_intent).sort()).toEqual(
        paid.map((row) => String(row["object"])).sort(),
      );
    },
    TEST_TIMEOUT_MS,
  );
});
