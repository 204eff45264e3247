import { expect, it } from "vitest";
import { run } from "../support/processes.js";

it("a command says in one line that the database cannot be used, and nothing of its address", async () => {
  const env = { DATABASE_URL: "postgres://user:marked@127.0.0.1:1/none" };
  const away = await run(["tenants", "list"], { env });
  expect([away.exit.code, away.stdout]).toEqual([1, ""]);
  expect(away.stderr).toBe("pawl: DATABASE_URL: the database cannot be used (ECONNREFUSED)\n");
});
