import { describe, expect, inject, it } from "vitest";
import { run } from "../support/processes.js";

function altered(change: (url: URL) => void): string {
  const url = new URL(inject("postgres").adminUrl);
  change(url);
  return url.href;
}

const AWAY = [
  {
    what: "is not reachable",
    code: "ECONNREFUSED",
    url: () => "postgres://user:marked@127.0.0.1:1/none",
  },
  {
    what: "refuses the password",
    code: "28P01",
    url: () =>
      altered((url) => {
        url.password = "marked";
      }),
  },
  {
    what: "does not exist",
    code: "3D000",
    url: () =>
      altered((url) => {
        url.pathname = "/marked";
      }),
  },
] as const;

const COMMANDS = [
  ["tenants list", "used"],
  ["reconcile", "used"],
  ["migrate", "brought up to date"],
  ["serve", "brought up to date"],
] as const;

it("a command says in one line that the database has not been migrated", async () => {
  const env = { DATABASE_URL: inject("postgres").adminUrl, STRIPE_SECRET_KEY: "sk_test_1" };
  const said = await Promise.all(
    ["tenants list", "reconcile"].map(async (command) => (await run(command.split(" "), { env })).stderr),
  );
  const line = "DATABASE_URL: the database cannot be used (42P01): `pawl migrate` brings it up to date";
  expect(said).toEqual([`pawl: ${line}\n`, `pawl: ${line}\n`]);
});

describe.each(AWAY)("where the database $what", ({ code, url }) => {
  it("every command says so in one line, and nothing of its address", async () => {
    const env = { DATABASE_URL: url(), STRIPE_SECRET_KEY: "sk_test_1" };
    const said = await Promise.all(
      COMMANDS.map(async ([command]) => {
        const { exit, stdout, stderr } = await run(command.split(" "), { env });
        return [command, exit.code, stdout, stderr];
      }),
    );
    expect(said).toEqual(
      COMMANDS.map(([command, wanted]) => [
        command,
        1,
        "",
        `pawl: DATABASE_URL: the database cannot be ${wanted} (${code})\n`,
      ]),
    );
  });
});
