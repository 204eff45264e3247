import postgres from "postgres";
import { type Cluster, startCluster } from "../support/postgres-cluster.js";
import { until } from "../support/until.js";

const UP_AGAIN_MS = 120_000;

/** A durable PostgreSQL server of the run's own, and what may happen to it. */
export class ChaosDatabase {
  private constructor(
    private readonly cluster: Cluster,
    /** As superuser, of the database `postgres`. */
    private readonly admin: postgres.Sql,
    /** Of the payments' database. */
    readonly sql: postgres.Sql,
  ) {}

  static async start(): Promise<ChaosDatabase> {
    const cluster = await startCluster({ durable: true });
    const options = { max: 1, onnotice: () => undefined };
    return new ChaosDatabase(cluster, postgres(cluster.adminUrl, options), postgres(cluster.url, options));
  }

  get url(): string {
    return this.cluster.url;
  }

  async restart(mode: "fast" | "immediate"): Promise<void> {
    await this.cluster.restart(mode);
    await this.#untilUp();
  }

  /** `kill -9` of the server itself: its supervisor starts another one, which recovers. */
  async killServer(): Promise<void> {
    const [row] = await this.admin<{ text: string }[]>`select pg_read_file('postmaster.pid') as text`;
    const pid = Number(row?.text.split("\n")[0]);
    process.kill(pid, "SIGKILL");
    await until(
      "another database server",
      async () => {
        const [seen] = await this.admin<
          { text: string }[]
        >`select pg_read_file('postmaster.pid') as text`.catch(() => []);
        return Number(seen?.text.split("\n")[0] ?? pid);
      },
      (found) => found !== pid,
      UP_AGAIN_MS,
    );
    await this.#untilUp();
  }

  /** `kill -9` of the process of one session, a working one if there is any: the server ends all others and recovers. */
  async killBackend(): Promise<void> {
    const [row] = await this.admin<{ pid: number }[]>`
      select pid from pg_stat_activity where datname = 'pawl' and backend_type = 'client backend'
       order by state = 'active' desc nulls last, backend_start limit 1`;
    if (row === undefined) throw new Error("nobody is connected to the database");
    process.kill(row.pid, "SIGKILL");
    await this.#untilUp();
  }

  async endSessions(): Promise<void> {
    await this.admin`select pg_terminate_backend(pid) from pg_stat_activity where datname = 'pawl'`;
  }

  async remove(): Promise<void> {
    await Promise.allSettled([this.admin.end({ timeout: 1 }), this.sql.end({ timeout: 1 })]);
    await this.cluster.remove();
  }

  /** Twice in a row: the server that is about to fall over its killed session still answers once. */
  async #untilUp(): Promise<void> {
    let answers = 0;
    await until(
      "a database that takes queries",
      async () => {
        const up = await Promise.all([this.admin`select 1`, this.sql`select 1`]).then(
          () => true,
          () => false,
        );
        answers = up ? answers + 1 : 0;
        return answers;
      },
      (count) => count >= 3,
      UP_AGAIN_MS,
    );
  }
}
