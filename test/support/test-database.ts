import { randomBytes } from "node:crypto";
import postgres from "postgres";
import { inject } from "vitest";

export { type Cluster, startCluster } from "./postgres-cluster.js";

export interface TestDatabase {
  /** As the role `pawl`, which owns the database and is no superuser. */
  readonly url: string;
  /** The same database as superuser. */
  readonly adminUrl: string;
  /** Ends every session and removes it. */
  readonly drop: () => Promise<void>;
}

/** A migrated, empty database of the caller's own, cloned from the template of global-setup.ts: about 50 ms. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const { adminUrl, template } = inject("postgres");
  const name = `test_${randomBytes(8).toString("hex")}`;
  await asAdmin(
    adminUrl,
    (admin) =>
      admin`create database ${admin(name)} template ${admin(template)} owner pawl strategy file_copy`,
  );
  const databaseUrl = (role?: string) => {
    const url = new URL(adminUrl);
    url.pathname = `/${name}`;
    // One password serves both roles.
    if (role !== undefined) url.username = role;
    return url.href;
  };
  return {
    url: databaseUrl("pawl"),
    adminUrl: databaseUrl(),
    drop: () => asAdmin(adminUrl, (admin) => admin`drop database if exists ${admin(name)} with (force)`),
  };
}

async function asAdmin(url: string, work: (admin: postgres.Sql) => Promise<unknown>): Promise<void> {
  const admin = postgres(url, { max: 1, onnotice: () => undefined });
  try {
    await work(admin);
  } finally {
    await admin.end();
  }
}
