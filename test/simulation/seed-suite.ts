import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../support/test-database.js";
import { describeReport } from "./describe-report.js";
import { runSeed } from "./run-seed.js";
import { openSimulatedDatabase, type SimulatedDatabase } from "./simulated-database.js";

/** Some ten times what a seed takes on an idle machine. */
const SEED_TIMEOUT_MS = 60_000;

/** A test for each seed of this range, both bounds included, on one database. */
export function checkSeeds(from: number, to: number): void {
  const stage = useSimulatedDatabase();
  for (let seed = from; seed <= to; seed += 1) {
    test(
      `seed ${String(seed)}: everything ends, and every account agrees with the provider to the cent`,
      async () => {
        const report = await runSeed(seed, { database: stage.database });
        if (report.faults.length > 0) expect.fail(describeReport(report));
      },
      SEED_TIMEOUT_MS,
    );
  }
}

/** A database of the file's own. */
export function useSimulatedDatabase(): { readonly database: SimulatedDatabase } {
  let clone: TestDatabase | null = null;
  let database: SimulatedDatabase | null = null;
  beforeAll(async () => {
    clone = await createTestDatabase();
    database = await openSimulatedDatabase(clone.url);
  });
  afterAll(async () => {
    await database?.close();
    await clone?.drop();
  });
  return {
    get database() {
      if (database === null) throw new Error("the database is opened before the first test");
      return database;
    },
  };
}
