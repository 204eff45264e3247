import type { SandboxControl } from "../../src/sandbox/index.js";
import { ApiClient, type PaymentDocument } from "./api-client.js";
import { e2eTarget, startSandboxProcess, type Target } from "./e2e-target.js";
import { type Environment, RealProcess, runJson } from "./processes.js";
import { createTestDatabase } from "./test-database.js";
import { until } from "./until.js";

export interface Api {
  readonly process: RealProcess;
  readonly url: string;
  readonly adminUrl: string;
  readonly client: ApiClient;
}

export interface Worker {
  readonly process: RealProcess;
  readonly adminUrl: string;
}

interface Addresses {
  readonly api_url: string | null;
  readonly admin_url: string;
}

export interface SystemOptions {
  /** A database of the caller's; without it a fresh one of the test run's server. */
  readonly databaseUrl?: string;
  readonly env?: Environment;
}

/** One database and one provider, and the processes that a test starts on them. */
export class System {
  readonly #workers: RealProcess[] = [];

  private constructor(
    readonly databaseUrl: string,
    readonly adminUrl: string | null,
    readonly target: Target,
    private readonly env: Environment,
    readonly tenantId: string,
    readonly secret: string,
    private readonly dropDatabase: () => Promise<void>,
  ) {}

  static async start(options: SystemOptions = {}, target?: Target): Promise<System> {
    const provider = target ?? (await e2eTarget());
    const fresh = options.databaseUrl === undefined ? await createTestDatabase() : null;
    const databaseUrl = fresh?.url ?? options.databaseUrl ?? "";
    const env = { PORT: "0", ADMIN_PORT: "0", ...provider.env, DATABASE_URL: databaseUrl, ...options.env };
    const { id } = await runJson<{ id: string }>(["tenants", "create", "--name", "acme"], { env });
    const { secret } = await runJson<{ secret: string }>(["keys", "create", "--tenant", id], { env });
    return new System(
      databaseUrl,
      fresh?.adminUrl ?? null,
      provider,
      env,
      id,
      secret,
      () => fresh?.drop() ?? Promise.resolve(),
    );
  }

  /** Throws in a run against Stripe's own test mode. */
  get control(): SandboxControl {
    if (this.target.control === null) throw new Error("no sandbox in this run");
    return this.target.control;
  }

  /** `pawl serve`, when it listens. */
  async api(env: Environment = {}): Promise<Api> {
    const process = new RealProcess(["serve", "--json"], { env: { ...this.env, ...env } });
    const addresses = await process.firstLine<Addresses>();
    const url = addresses.api_url ?? "";
    return { process, url, adminUrl: addresses.admin_url, client: new ApiClient(url, this.secret) };
  }

  /** `pawl worker`, when it works. */
  async worker(env: Environment = {}): Promise<Worker> {
    const process = new RealProcess(["worker", "--json"], { env: { ...this.env, ...env } });
    this.#workers.push(process);
    const { admin_url: adminUrl } = await process.firstLine<Addresses>();
    return { process, adminUrl };
  }

  /** Ends whatever worker a test has left, so that none takes part in the next one. */
  async crashWorkers(): Promise<void> {
    await Promise.all(this.#workers.splice(0).map((worker) => worker.crash()));
  }

  /** Any other command of the command line, with this system's settings. */
  command<T>(...args: readonly string[]): Promise<T> {
    return runJson<T>(args, { env: this.env });
  }

  settings(env: Environment = {}): Environment {
    return { ...this.env, ...env };
  }

  async drop(): Promise<void> {
    await this.dropDatabase();
  }
}

/** A system whose provider is a sandbox in its own process, whatever the run's target is. */
export async function startFaultySystem(options: SystemOptions = {}): Promise<System> {
  return System.start(options, await startSandboxProcess());
}

/** Waits until the payment's status is one of these. */
export function untilStatus(
  client: ApiClient,
  id: string,
  statuses: readonly string[],
): Promise<PaymentDocument> {
  return until(
    `${id} in ${statuses.join("|")}`,
    () => client.payment(id),
    (payment) => statuses.includes(payment.status),
  );
}

/** Waits until a worker has nothing of this payment left to do. A declined payment's object is closed after it failed. */
export async function untilEnded(client: ApiClient, id: string): Promise<PaymentDocument> {
  const payment = await untilStatus(client, id, ["succeeded", "authorized", "failed", "canceled"]);
  if (payment.status === "failed" && payment.provider_payment_id !== null) {
    await until(
      `the object of ${id} closed at the provider, and read back`,
      () => client.timeline(id),
      (timeline) => timeline.some((entry) => entry.outcome === "found: canceled"),
    );
  }
  return payment;
}
