import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Random } from "../simulation/random.js";
import { ApiClient } from "../support/api-client.js";
import { subscribe } from "../support/merchant.js";
import { STRIPE_SECRET } from "../support/stripe-sender.js";
import { runCommand } from "./command.js";
import { ChaosDatabase } from "./database.js";
import { ChaosProcess, type Environment, MAIN, Morgue } from "./process.js";
import { ChaosProvider } from "./provider.js";
import { ChaosReceiver } from "./receiver.js";

export const LEASE_MS = 2_500;

/** Durations in proportion to each other as in production, and short enough to see each of them end. */
const SETTINGS: Environment = {
  ADMIN_PORT: "0",
  LOG_LEVEL: "info",
  DATABASE_POOL_MAX: "6",
  SHUTDOWN_GRACE_MS: "40000",
  STRIPE_SECRET_KEY: "sk_test_chaos",
  STRIPE_WEBHOOK_SECRET: STRIPE_SECRET,
  PROVIDER_TIMEOUT_MS: "1000",
  ATTEMPT_LEASE_MS: String(LEASE_MS),
  ATTEMPT_RETRY_BUDGET_MS: "30000",
  POLL_INTERVAL_MS: "100",
  RETRY_FIRST_MS: "50",
  RETRY_MOST_MS: "1000",
  FOLLOW_FIRST_MS: "100",
  FOLLOW_MOST_MS: "1000",
  CUSTOMER_ACTION_EXPIRY_MS: "6000",
  RECONCILE_INTERVAL_MS: "200",
  // The comparison, too, is killed in the middle, and must find nothing.
  RECONCILE_LISTS_INTERVAL_MS: "10000",
  RECONCILE_WINDOW_HOURS: "0.02",
  RECONCILE_LAG_MS: "3000",
  PROVIDER_EVENT_INTERVAL_MS: "100",
  // With retries seconds apart as here, an outage of a minute would use up the usual number.
  PROVIDER_EVENT_MOST_TRIES: "1000",
  RELAY_INTERVAL_MS: "100",
  LEDGER_INTERVAL_MS: "200",
  WEBHOOK_INTERVAL_MS: "100",
  WEBHOOK_TIMEOUT_MS: "1000",
  WEBHOOK_ALLOW_PRIVATE_TARGETS: "true",
  WEBHOOK_RETRY_SCHEDULE_MS: ["100", "300", ...Array.from({ length: 200 }, () => "1000")].join(","),
};

export interface PawlAddresses {
  readonly api_url: string | null;
  readonly admin_url: string;
}
export type PawlProcess = ChaosProcess<PawlAddresses>;
type Pair<T> = [T, T];

/** Everything that can die: PostgreSQL, the sandbox, two APIs and two workers; and a merchant's receiver, which lives. */
export class ChaosSystem {
  readonly apis: Pair<PawlProcess>;
  readonly workers: Pair<PawlProcess>;
  /** When a frozen worker was let go on, in milliseconds since 1970. */
  readonly thawed: number[] = [];

  private constructor(
    readonly morgue: Morgue,
    readonly database: ChaosDatabase,
    readonly provider: ChaosProvider,
    readonly receiver: ChaosReceiver,
    readonly secret: string,
    readonly endpointId: string,
    private readonly env: Environment,
    processes: { apis: Pair<PawlProcess>; workers: Pair<PawlProcess> },
  ) {
    this.apis = processes.apis;
    this.workers = processes.workers;
  }

  static async start(seed: number): Promise<ChaosSystem> {
    if (!existsSync(MAIN)) throw new Error(`${MAIN} is not there: npm run build first`);
    const morgue = new Morgue(mkdtempSync(join(tmpdir(), `pawl-chaos-${process.pid}-`)));
    const urls: string[] = [];
    const database = await ChaosDatabase.start();
    const provider = await ChaosProvider.start(morgue, () => urls);
    const receiver = await ChaosReceiver.start(new Random(seed, "receiver"));
    const env = { ...SETTINGS, DATABASE_URL: database.url, STRIPE_API_BASE: provider.url };
    const api = () => ChaosProcess.start<PawlAddresses>("api", ["serve"], { ...env, PORT: "0" }, morgue);
    const worker = () => ChaosProcess.start<PawlAddresses>("worker", ["worker"], env, morgue);
    const tenant = await runCommand<{ id: string }>(["tenants", "create", "--name", "chaos"], env);
    const { secret } = await runCommand<{ secret: string }>(["keys", "create", "--tenant", tenant.id], env);
    const apis: Pair<PawlProcess> = [await api(), await api()];
    urls.push(...apis.map(urlOf));
    const endpoint = await subscribe(new ApiClient(urlOf(apis[0]), secret), receiver.url);
    receiver.expectSignedWith(endpoint.secret);
    await provider.disturb();
    const workers: Pair<PawlProcess> = [await worker(), await worker()];
    const processes = { apis, workers };
    return new ChaosSystem(morgue, database, provider, receiver, secret, endpoint.id, env, processes);
  }

  /** The same all the time: an API comes back where it was. */
  get urls(): readonly string[] {
    return this.apis.map(urlOf);
  }

  /** In the place of one that has ended. */
  async startApi(at: 0 | 1): Promise<void> {
    const env = { ...this.env, PORT: new URL(urlOf(this.apis[at])).port };
    this.apis[at] = await ChaosProcess.start<PawlAddresses>("api", ["serve"], env, this.morgue);
  }

  async startWorker(at: 0 | 1): Promise<void> {
    this.workers[at] = await ChaosProcess.start<PawlAddresses>("worker", ["worker"], this.env, this.morgue);
  }

  /** `pawl <args> --json`, with this system's settings and these; `alsoCode`: an exit that is as good as 0. */
  command<T>(args: readonly string[], env: Environment, alsoCode: number): Promise<T> {
    return runCommand<T>(args, { ...this.env, ...env }, alsoCode);
  }

  /** Throws when something has died that nobody killed. */
  expectAlive(): void {
    const [first] = this.morgue.unexpected;
    if (first !== undefined) throw new Error(first);
  }

  /** Ends everything. The logs stay, unless `forget`. */
  async remove(forget: boolean): Promise<void> {
    await Promise.all([...this.apis, ...this.workers].map((one) => one.crash()));
    await Promise.all([this.provider.stop(), this.receiver.stop()]);
    await this.database.remove();
    if (forget) rmSync(this.morgue.folder, { recursive: true, force: true });
  }
}

function urlOf({ addresses }: PawlProcess): string {
  if (addresses.api_url === null) throw new Error("this process has no API");
  return addresses.api_url;
}
