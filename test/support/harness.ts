import { randomBytes } from "node:crypto";
import { readConfig, type WorkerName } from "../../src/config.js";
import type { PaymentInput } from "../../src/domain/payment.js";
import { createLogger } from "../../src/lib/log.js";
import { authenticate } from "../../src/operations/authenticate.js";
import { createPayment } from "../../src/operations/create-payment.js";
import type { Caller, Deps, Probe } from "../../src/operations/deps.js";
import type { KeyedAnswer } from "../../src/operations/keyed-request.js";
import { createApiKey, createTenant } from "../../src/operations/manage-tenants.js";
import { getPayment } from "../../src/operations/read-payments.js";
import { type Sandbox, type SandboxOptions, startSandbox } from "../../src/sandbox/index.js";
import { type Pawl, wire } from "../../src/wire.js";
import { createTestDatabase, type TestDatabase } from "./test-database.js";

/** Durations that a test can wait for; each test file overrides what it stages. */
const QUICK: Readonly<Record<string, string>> = {
  PROVIDER_TIMEOUT_MS: "400",
  ATTEMPT_LEASE_MS: "1000",
  ATTEMPT_RETRY_BUDGET_MS: "20000",
  POLL_INTERVAL_MS: "50",
  RECONCILE_INTERVAL_MS: "100",
  RETRY_FIRST_MS: "20",
  RETRY_MOST_MS: "200",
  FOLLOW_FIRST_MS: "50",
  FOLLOW_MOST_MS: "200",
  LOG_LEVEL: "silent",
};

export interface Harness {
  readonly database: TestDatabase;
  readonly sandbox: Sandbox;
  readonly pawl: Pawl;
  readonly deps: Deps;
  readonly caller: Caller;
  readonly secret: string;
  /** Another process on the same database: its own pool, caches, hub and workers. */
  another(options?: ProcessOptions): Promise<Pawl>;
  stop(): Promise<void>;
}

export interface HarnessOptions extends ProcessOptions {
  /** A migrated one of the test's own, dropped at the end; without it, a clone of the template. */
  readonly database?: TestDatabase;
  readonly sandbox?: SandboxOptions;
}

export interface ProcessOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly workers?: readonly WorkerName[];
  readonly probe?: Probe;
  readonly stripeKey?: string;
}

const ALL: readonly WorkerName[] = ["attempts", "reconciler", "ledger", "reaper"];

/** Real operations and workers in this process, on a database and a sandbox of their own. */
export async function startHarness(options: HarnessOptions = {}): Promise<Harness> {
  const database = options.database ?? (await createTestDatabase());
  const sandbox = await startSandbox(options.sandbox);
  const processes: Pawl[] = [];
  const another = async (other: ProcessOptions = {}): Promise<Pawl> => {
    const config = readConfig({ ...QUICK, ...options.env, ...other.env });
    const wired = await wire(
      config,
      {
        databaseUrl: database.url,
        stripeSecretKey: other.stripeKey ?? options.stripeKey ?? "sk_test_harness",
        stripeApiBase: sandbox.url,
      },
      createLogger({ level: config.logLevel }),
      other.probe === undefined ? {} : { probe: other.probe },
    );
    processes.push(wired);
    await wired.deps.account.resolve();
    await wired.startWorkers(other.workers ?? ALL);
    await wired.watchOutcomes();
    return wired;
  };
  const pawl = await another(options);
  const tenant = await createTenant(pawl.deps, "test");
  const key = await createApiKey(pawl.deps, {
    tenantId: tenant.id,
    scopes: null,
    livemode: pawl.deps.provider.livemode,
  });
  if (key === null) throw new Error("the tenant vanished");
  const caller = await authenticate(pawl.deps, key.secret);
  if (caller === null) throw new Error("the key is not accepted");
  return {
    database,
    sandbox,
    pawl,
    deps: pawl.deps,
    caller,
    secret: key.secret,
    another,
    stop: async () => {
      await sandbox.control.clearFaults();
      await sandbox.control.release();
      for (const wired of processes) {
        await wired.drain(0);
        await wired.close();
      }
      await sandbox.stop();
      await database.drop();
    },
  };
}

export function newKey(): string {
  return randomBytes(12).toString("hex");
}

export function paymentInput(changes: Partial<PaymentInput> = {}): PaymentInput {
  return {
    amount: 4200,
    currency: "usd",
    payment_method: "pm_card_visa",
    capture_method: "automatic",
    merchant_order_id: null,
    customer: null,
    description: null,
    statement_descriptor: null,
    return_url: null,
    metadata: {},
    ...changes,
  };
}

export interface PayOptions {
  readonly key?: string;
  readonly input?: Partial<PaymentInput>;
  readonly waitMs?: number;
  readonly explicit?: boolean;
  readonly deps?: Deps;
}

/** One `POST /v1/payments`, past the HTTP layer. */
export function pay(harness: Harness, options: PayOptions = {}): Promise<KeyedAnswer> {
  const context = { requestId: `req_${newKey()}`, traceparent: null, signal: new AbortController().signal };
  return createPayment(
    options.deps ?? harness.deps,
    { caller: harness.caller, context, key: options.key ?? newKey() },
    paymentInput(options.input),
    { waitMs: options.waitMs ?? 10_000, explicit: options.explicit ?? false },
  );
}

/** The payment document of an answer, stored or not. */
export function documentOf(answer: KeyedAnswer): Record<string, unknown> & { id: string; status: string } {
  if (answer.type === "processing") return answer.document as { id: string; status: string };
  const body = JSON.parse(answer.response.body) as Record<string, unknown>;
  return (body["payment"] ?? body) as Record<string, unknown> & { id: string; status: string };
}

const SETTLE_MS = 15_000;
const LOOK_AGAIN_MS = 15;

/** Waits until `done` holds; throws with `what` when it does not within 15 s. */
export async function until<T>(
  what: string,
  look: () => Promise<T>,
  done: (value: T) => boolean,
): Promise<T> {
  const deadline = Date.now() + SETTLE_MS;
  for (;;) {
    const value = await look();
    if (done(value)) return value;
    if (Date.now() > deadline)
      throw new Error(`${what} did not come about: ${JSON.stringify(value)?.slice(0, 4_000)}`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
  }
}

/** Waits until the payment has one of these statuses. */
export function untilStatus(harness: Harness, paymentId: string, ...statuses: string[]) {
  return until(
    `${paymentId} in ${statuses.join("|")}`,
    () => getPayment(harness.deps, harness.caller, paymentId),
    (payment) => statuses.includes(payment.status),
  );
}
