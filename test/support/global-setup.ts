import postgres from "postgres";
import type { TestProject } from "vitest/node";
import { migrate } from "../../src/store/migrate.js";
import { startEmptyCluster } from "./postgres-cluster.js";

declare module "vitest" {
  interface ProvidedContext {
    postgres: { readonly adminUrl: string; readonly template: string };
  }
}

const TEMPLATE = "pawl_template";

/** One throw-away server for a test run, and in it a migrated database from which each test file clones its own. */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const cluster = await startEmptyCluster({ durable: false });
  const admin = postgres(cluster.adminUrl, { max: 1, onnotice: () => undefined });
  try {
    await admin`create database ${admin(TEMPLATE)} owner pawl`;
    const url = new URL(cluster.url);
    url.pathname = `/${TEMPLATE}`;
    await migrate(url.href);
    // A template with an open connection cannot be cloned, so nobody may connect to it any more.
    await admin`alter database ${admin(TEMPLATE)} with is_template true allow_connections false`;
  } finally {
    await admin.end();
  }
  project.provide("postgres", { adminUrl: cluster.adminUrl, template: TEMPLATE });
  return () => cluster.remove();
}
