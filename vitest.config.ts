import { defineConfig } from "vitest/config";

const DATABASE_SETUP = "./test/support/global-setup.ts";
const TEST_TIMEOUT_MS = 30_000;
const PROCESS_TEST_TIMEOUT_MS = 120_000;

export default defineConfig({
  test: {
    maxWorkers: 2,
    allowOnly: false,
    testTimeout: TEST_TIMEOUT_MS,
    hookTimeout: TEST_TIMEOUT_MS,
    // The groups run one after another: a process test beside a unit test would measure how busy the machine is.
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: ["test/{unit,explore,sandbox,tidy,embedded-postgres}/**/*.test.ts"],
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "database",
          include: ["test/{integration,contract,race,simulation}/**/*.test.ts"],
          globalSetup: [DATABASE_SETUP],
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
          globalSetup: [DATABASE_SETUP],
          testTimeout: PROCESS_TEST_TIMEOUT_MS,
          hookTimeout: PROCESS_TEST_TIMEOUT_MS,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
