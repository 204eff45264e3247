import { randomBytes } from "node:crypto";
import { readdirSync } from "node:fs";
import postgres from "postgres";
import { expect, inject, test } from "vitest";
import { migrate } from "../../src/store/migrate.js";

const PROCESSES = 10;

test("ten processes that migrate an empty database at once apply each migration once", async () => {
  const { adminUrl } = inject("postgres");
  const name = `empty_${randomBytes(8).toString("hex")}`;
  const url = new URL(adminUrl);
  url.pathname = `/${name}`;
  const admin = postgres(adminUrl, { max: 1, onnotice: () => undefined });
  await admin`create database ${admin(name)}`;
  const empty = postgres(url.href, { max: 1, onnotice: () => undefined });
  try {
    await Promise.all(Array.from({ length: PROCESSES }, () => migrate(url.href)));
    const applied = await empty`select hash from drizzle.__drizzle_migrations`;
    const files = readdirSync("drizzle").filter((file) => file.endsWith(".sql"));
    expect(applied).toHaveLength(files.length);
    expect(await empty`select to_regclass('attempts')::text as name`).toEqual([{ name: "attempts" }]);
    // Once more, with nothing left to do.
    await migrate(url.href);
    expect(await empty`select hash from drizzle.__drizzle_migrations`).toHaveLength(files.length);
  } finally {
    await empty.end();
    await admin`drop database ${admin(name)} with (force)`;
    await admin.end();
  }
});
