import { describe } from "vitest";
import { SandboxControl } from "../../src/sandbox/index.js";
import { type Environment, RealProcess } from "./processes.js";

/** Durations that a test can wait for. Room enough that a busy machine alone makes no call time out. */
const QUICK: Environment = {
  PROVIDER_TIMEOUT_MS: "1000",
  ATTEMPT_LEASE_MS: "2000",
  ATTEMPT_RETRY_BUDGET_MS: "30000",
  POLL_INTERVAL_MS: "50",
  RECONCILE_INTERVAL_MS: "100",
  RETRY_FIRST_MS: "20",
  RETRY_MOST_MS: "200",
  FOLLOW_FIRST_MS: "50",
  FOLLOW_MOST_MS: "200",
  DATABASE_POOL_MAX: "5",
  SHUTDOWN_GRACE_MS: "5000",
};

/** What plays the provider's part. */
export interface Target {
  /** Settings of every process that talks to the provider. */
  readonly env: Environment;
  /** Null against Stripe itself. */
  readonly control: SandboxControl | null;
}

/** Stripe's own test mode takes the sandbox's place when its key is in the environment of the test run. */
const STRIPE_KEY = /^[sr]k_test_/.test(process.env["STRIPE_SECRET_KEY"] ?? "")
  ? process.env["STRIPE_SECRET_KEY"]
  : undefined;

const againstStripe = STRIPE_KEY !== undefined;

/** Starts a sandbox as its own process, unless the run is against Stripe's test mode. */
export async function e2eTarget(): Promise<Target> {
  if (STRIPE_KEY !== undefined) return { env: { STRIPE_SECRET_KEY: STRIPE_KEY }, control: null };
  return startSandboxProcess();
}

/** For suites that inject faults or read the provider's request log. */
export async function startSandboxProcess(
  args: readonly string[] = [],
): Promise<Target & { readonly control: SandboxControl; readonly process: RealProcess }> {
  const sandbox = new RealProcess(["sandbox", "--json", "--port", "0", "--control-port", "0", ...args]);
  const { url, control_url: controlUrl } = await sandbox.firstLine<{ url: string; control_url: string }>();
  return {
    env: { ...QUICK, STRIPE_SECRET_KEY: "sk_test_endtoend", STRIPE_API_BASE: url },
    control: new SandboxControl(controlUrl),
    process: sandbox,
  };
}

/** A suite that Stripe's own test mode cannot play: there it is left out by name. */
export function describeWithFaults(name: string, body: () => void): void {
  describe.skipIf(againstStripe)(
    againstStripe ? `${name} (needs injected faults: left out against Stripe's own test mode)` : name,
    body,
  );
}
