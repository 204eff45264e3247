import postgres from "postgres";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openDatabase } from "../../src/store/db.js";
import { DECLINED, newKey, VISA } from "../support/api-client.js";
import { describeWithFaults } from "../support/e2e-target.js";
import { startLoad } from "../support/load.js";
import { describeWithProgram } from "../support/needs-program.js";
import { type Pooler, startPooler } from "../support/pgbouncer.js";
import { expectSettled } from "../support/settle.js";
import { type Api, type System, startFaultySystem, type Worker } from "../support/system.js";
import { createTestDatabase, type TestDatabase } from "../support/test-database.js";

const CALLERS = 16;
const PAYMENTS = 300;
const IDENTICAL = 50;

describeWithProgram("pgbouncer", "behind PgBouncer in transaction mode", (program) => {
  describeWithFaults("with DATABASE_PREPARE=false", () => {
    let database: TestDatabase;
    let pooler: Pooler;
    let system: System;
    let apis: Api[];
    let workers: Worker[];

    beforeAll(async () => {
      database = await createTestDatabase();
      pooler = await startPooler(program, database.url);
      system = await startFaultySystem({ databaseUrl: pooler.url, env: { DATABASE_PREPARE: "false" } });
      apis = [await system.api(), await system.api()];
      workers = [await system.worker(), await system.worker()];
    });
    afterAll(async () => {
      await pooler.stop();
      await database.drop();
    });

    const client = () => (apis[0] as Api).client;

    it("payments succeed, decline, replay and list as without it", async () => {
      const key = newKey();
      const paid = await client().pay(VISA, { key });
      expect(paid.status, paid.text).toBe(201);
      const replayed = await (apis[1] as Api).client.pay(VISA, { key });
      expect([replayed.status, replayed.text]).toEqual([201, paid.text]);
      const declined = await client().pay(DECLINED);
      expect([declined.status, declined.json.code]).toEqual([402, "payment_declined"]);
      expect((await client().get("/v1/payments?limit=1")).json["has_more"]).toBe(true);
      const declinedId = declined.json.payment?.id ?? "";
      await expectSettled(client(), system.control, [paid.json.id ?? "", declinedId]);
    });

    it("statements at once on one connection are each answered, and with their own rows", async () => {
      const db = await openDatabase({ url: pooler.url, poolMax: 1, prepare: false });
      const rounds = Array.from({ length: 50 }, (_, round) => round);
      for (const round of rounds) {
        const [plain, asking] = await Promise.all([
          db.sql`select 'plain' as word`,
          db.sql`select ${round}::int as n`,
        ]);
        expect([plain, asking]).toEqual([[{ word: "plain" }], [{ n: round }]]);
      }
      await db.close();
    });

    it("many callers at two processes lose nothing, and nothing is left behind in the sessions", async () => {
      const load = startLoad(
        apis.map((api) => api.client),
        CALLERS,
      );
      const key = newKey();
      const identical = Array.from({ length: IDENTICAL }, (_, at) =>
        (apis[at % 2] as Api).client.pay(VISA, { key, prefer: "wait=20" }),
      );
      const answers = await Promise.all(identical);
      expect(answers.map((answer) => answer.status)).toEqual(answers.map(() => 201));
      expect(new Set(answers.map((answer) => answer.text)).size).toBe(1);
      await load.more(PAYMENTS);
      const ids = await load.finish();
      expect(load.broken).toEqual([]);
      expect(load.refusals.map((answer) => answer.text)).toEqual([]);
      await expectSettled(client(), system.control, ids.slice(-CALLERS));

      const admin = postgres(database.adminUrl, { max: 1, onnotice: () => undefined });
      const locks = await admin`
        select locktype from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`;
      const open = await admin`
        select state from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'`;
      await admin.end();
      expect([locks, open]).toEqual([[], []]);
      const complaints = [...apis, ...workers].flatMap(({ process }) =>
        process.stderr.split("\n").filter((line) => /prepared statement|"level":"error"/.test(line)),
      );
      expect(complaints).toEqual([]);
    });
  });
});
