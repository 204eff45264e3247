import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../src/embedded-postgres/embedded-postgres.js";
import { createLogger } from "../src/lib/log.js";
import { migrate } from "../src/store/migrate.js";
import { connectAdmin, makeCrowd, moveOldest } from "../test/support/doctor-crowd.js";

const YEAR_MS = 365 * 86_400_000;
const HOUR_MS = 3_600_000;
/** Payments that are made by one statement: its rows stay in memory. */
const CHUNK = 100_000;
/** Parts of all payments that are one tenant's; and tenants with none. */
const SHARES = [0.5, 0.2, 0.1, 0.1, 0.05, 0.05];
const IDLE_TENANTS = 200;
const ENDPOINTS = 20;
/** Numbers of payments from here on are of those that are made while it is measured. */
const LATELY = 1_000_000_000;
/** A payment has ended so long after it was made. */
const ENDED_MS = 1_000;
const RETAINED = "30 days";
/** A crash would lose the crowd, and nothing else. */
const SERVER = {
  fsync: "off",
  full_page_writes: "off",
  synchronous_commit: "off",
  wal_level: "minimal",
  max_wal_senders: "0",
  max_wal_size: "2GB",
  autovacuum: "off",
  shared_buffers: "1GB",
  maintenance_work_mem: "512MB",
  track_io_timing: "off",
};

/** A server with nothing on it but what is measured. */
export interface BenchServer {
  /** An empty, migrated database; the one before is dropped. */
  begin(): Promise<void>;
  /** As the role that owns the database: what Pawl is given. */
  readonly url: string;
  /** Starts the server anew, with neither its own nor the system's memory of its files, where the system can. */
  forget(): Promise<{ readonly isCold: boolean }>;
  /** A connection as superuser to the database that was begun. */
  admin(): postgres.Sql;
  remove(): Promise<void>;
}

export async function startBenchServer(parent: string): Promise<BenchServer> {
  const root = mkdtempSync(join(parent, "pawl-bench-doctor-"));
  // The server may run as another user than root.
  chmodSync(root, 0o711);
  const folder = join(root, "postgres");
  const log = createLogger({ level: "fatal" });
  const start = (port?: number) =>
    startEmbeddedPostgres({ folder, log, settings: SERVER, ...(port === undefined ? {} : { port }) });
  let server: EmbeddedPostgres = await start();
  const { url, adminUrl, port } = server;
  const own = new URL(adminUrl);
  own.pathname = new URL(url).pathname;
  const admin = () => connectAdmin(own.href, { work_mem: "256MB", temp_buffers: "128MB" });
  return {
    url,
    admin,
    begin: async () => {
      const outside = postgres(adminUrl, { max: 1, onnotice: () => undefined });
      await outside`drop database if exists pawl with (force)`;
      await outside`create database pawl owner pawl`;
      await outside.end();
      await migrate(url);
    },
    forget: async () => {
      await server.stop();
      const isCold = forgetFiles(folder);
      server = await start(port);
      return { isCold };
    },
    remove: async () => {
      await server.stop("immediate");
      rmSync(root, { recursive: true, force: true });
    },
  };
}

/** GNU dd tells the system that a file's pages are needed no more; what is not written yet stays, so it is written first. */
function forgetFiles(folder: string): boolean {
  try {
    execFileSync("sync", ["--file-system", folder]);
    for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
      if (!entry.isFile()) continue;
      const file = join(entry.parentPath, entry.name);
      execFileSync("dd", [`if=${file}`, "iflag=nocache", "count=0", "status=none"]);
    }
    return true;
  } catch {
    return false;
  }
}

/**
 * A year of payments of some tenants, unevenly many, up to an hour ago, with endpoints, deliveries and the provider's
 * events as far back as they are kept; vacuumed and analyzed. Two connections make them, the largest tenant's on one.
 */
export async function makeYear(
  server: BenchServer,
  payments: number,
  onPayments: (made: number) => void,
): Promise<void> {
  const sql = server.admin();
  const connections = [sql, server.admin()];
  try {
    await makeInstallation(sql);
    const counts = SHARES.map((share) => Math.round(payments * share));
    const left = counts.map((count, at) => ({
      tenantId: tenantAt(at),
      count,
      before: counts.slice(0, at).reduce((sum, other) => sum + other, 0),
    }));
    let made = 0;
    await Promise.all(
      connections.map(async (own) => {
        for (let tenant = left.shift(); tenant !== undefined; tenant = left.shift()) {
          await makeTenant(own, tenant, (count) => {
            made += count;
            onPayments(made);
          });
        }
      }),
    );
    await makeTraffic(sql);
    await sql`vacuum (analyze)`;
  } finally {
    await Promise.all(connections.map((own) => own.end()));
  }
}

async function makeTenant(
  sql: postgres.Sql,
  tenant: { readonly tenantId: string; readonly count: number; readonly before: number },
  onMade: (count: number) => void,
): Promise<void> {
  const { tenantId, count: all, before } = tenant;
  const stepMs = (YEAR_MS - HOUR_MS) / all;
  for (let from = 0; from < all; from += CHUNK) {
    const count = Math.min(CHUNK, all - from);
    const agoMs = HOUR_MS + (all - from - count) * stepMs;
    const crowd = { tenantId, count, stepMs, agoMs, firstNumber: before + from };
    await makeCrowd(sql, { ...crowd, lives: "mixed" });
    onMade(count);
  }
}

/** Payments of the last `lastMs`. `number`: of the times that it is called, each its own. */
export async function makeLately(
  sql: postgres.Sql,
  number: number,
  payments: number,
  lastMs: number,
): Promise<void> {
  for (const [at, share] of SHARES.entries()) {
    const count = Math.max(1, Math.round(payments * share));
    const firstNumber = LATELY + number * 1_000_000 + at * CHUNK;
    const crowd = {
      tenantId: tenantAt(at),
      count,
      stepMs: (lastMs - ENDED_MS) / count,
      agoMs: ENDED_MS,
      firstNumber,
    };
    await makeCrowd(sql, { ...crowd, lives: "mixed" });
    await moveOldest(sql, tenantAt(at), Math.max(1, Math.round(count / 20)));
  }
}

/** Shorter than real ones: half of what the indexes of ten million payments take would be this one word. */
const tenantAt = (at: number) => `ten_a${at}`;

async function makeInstallation(sql: postgres.Sql): Promise<void> {
  await sql`insert into installation (secret) values ('s') on conflict do nothing`;
  const first = SHARES.map((_, at) => tenantAt(at));
  for (const id of first) await sql`insert into tenants (id, name) values (${id}, 'busy')`;
  await sql`insert into tenants (id, name)
    select 'ten_b' || n, 'idle' from generate_series(1, ${IDLE_TENANTS}::int) n`;
  await sql`
    insert into webhook_endpoints (tenant_id, id, url, secret)
    select t.id, 'we_' || t.id || '_' || n, 'https://merchant.example', 's'
      from tenants t cross join generate_series(1, ${ENDPOINTS}::int) n where t.name = 'busy'`;
}

/** What was delivered and applied and is still kept; the last minutes' are under way. */
async function makeTraffic(sql: postgres.Sql): Promise<void> {
  await sql`
    insert into deliveries (tenant_id, endpoint_id, event_id, payment_id, sequence, ordinal, state, tries, due_at, created_at,
      delivered_at)
    select o.tenant_id, e.id, o.id, o.payment_id, o.sequence, o.ordinal,
           case when o.is_recent then 'pending' else 'delivered' end::delivery_state, 1,
           case when o.is_recent then now() + interval '1 day' end, o.created_at,
           case when not o.is_recent then o.created_at end
      from (select *, created_at > now() - interval '2 minutes' as is_recent from outbox
             where created_at > now() - ${RETAINED}::interval) o
      join lateral (select id from webhook_endpoints e where e.tenant_id = o.tenant_id
                     order by id offset abs(hashtext(o.payment_id)) % ${ENDPOINTS}::int limit 1) e on true`;
  await sql`
    insert into provider_events (provider, event_id, type, livemode, object_id, payload, state, due_at, outcome, received_at,
      applied_at)
    select 'stripe', 'evt_' || right(o.id, 24), 'payment_intent.succeeded', false, 'pi_1', '{}', 'applied', null, 'nothing_new',
           o.created_at, o.created_at
      from outbox o where o.sequence = 2 and o.created_at > now() - ${RETAINED}::interval`;
}
