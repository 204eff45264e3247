import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import postgres from "postgres";
import { RealProcess } from "./processes.js";
import { until } from "./until.js";

export interface Pooler {
  /** The database, through the pooler. */
  readonly url: string;
  stop(): Promise<void>;
}

const POOL_SIZE = 8;

/** PgBouncer in transaction mode before this database, with its defaults for everything that is not about where it runs. */
export async function startPooler(program: string, databaseUrl: string): Promise<Pooler> {
  const { hostname, port, username, password, pathname } = new URL(databaseUrl);
  const folder = mkdtempSync(join(tmpdir(), "pawl-pooler-"));
  const listenPort = await freePort();
  const server = `host=${hostname} port=${port} dbname=${pathname.slice(1)} user=${username} password=${password}`;
  const lines = [
    "[databases]",
    `pooled = ${server}`,
    "[pgbouncer]",
    "listen_addr = 127.0.0.1",
    `listen_port = ${listenPort}`,
    "unix_socket_dir =",
    "auth_type = any",
    "pool_mode = transaction",
    `default_pool_size = ${POOL_SIZE}`,
  ];
  writeFileSync(join(folder, "pgbouncer.ini"), lines.join("\n"));
  // It does not run as root: there it becomes an ordinary user, who must be able to read this.
  chmodSync(folder, 0o755);
  const user = process.getuid?.() === 0 ? ["-u", "nobody"] : [];
  const pooler = new RealProcess([...user, join(folder, "pgbouncer.ini")], { program: [program] });
  const url = `postgres://${username}@127.0.0.1:${listenPort}/pooled`;
  await until(
    "a pooler that answers",
    async () => (await answers(url)) || pooler.exit !== null,
    (ready) => ready,
  );
  if (pooler.exit !== null) throw new Error(`pgbouncer did not start: ${pooler.stderr}`);
  return {
    url,
    stop: async () => {
      await pooler.crash();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function answers(url: string): Promise<boolean> {
  const sql = postgres(url, { max: 1, prepare: false, fetch_types: false, onnotice: () => undefined });
  try {
    await sql`select 1`;
    return true;
  } catch {
    return false;
  } finally {
    await sql.end({ timeout: 1 });
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === "object" ? (address?.port ?? 0) : 0));
    });
  });
}
