import { afterEach, expect } from "vitest";
import type { LoggedRequest, RequestFilter } from "../../src/sandbox/request-log.js";
import type { Pawl } from "../../src/wire.js";
import { Gate } from "./gate.js";
import { type Harness, type HarnessOptions, startHarness } from "./harness.js";
import { faultsAfterSettling } from "./settle-checks.js";

/** Long enough for a busy machine; a test that stages a timeout says so. */
export const PATIENT: Readonly<Record<string, string>> = {
  PROVIDER_TIMEOUT_MS: "5000",
  ATTEMPT_LEASE_MS: "15000",
};
/** For tests in which calls stay unanswered or leases end. */
export const HASTY: Readonly<Record<string, string>> = {
  PROVIDER_TIMEOUT_MS: "400",
  ATTEMPT_LEASE_MS: "1200",
};

/** For many payments at once in one process: a stall of it must not look like a request that arrives late. */
export const CROWDED: Readonly<Record<string, string>> = {
  PROVIDER_TIMEOUT_MS: "2000",
  ATTEMPT_LEASE_MS: "4500",
};

export interface Stage {
  /** A database, a sandbox and a process of the test's own. */
  start(options?: HarnessOptions): Promise<Harness>;
  /** A gate that is opened at the test's end at the latest. */
  gate(point: string, skip?: number): Gate;
}

/**
 * For a test file: every harness started here is settled, checked and stopped after its test. What is checked holds
 * after every test, whatever it staged: see settle-checks.ts.
 */
export function useStage(): Stage {
  const harnesses: Harness[] = [];
  const gates: Gate[] = [];
  afterEach(async ({ task }) => {
    for (const gate of gates.splice(0)) gate.open();
    for (const harness of harnesses.splice(0)) {
      try {
        // A test that failed half-way has settled nothing, and its own error says more.
        if (task.result?.state === "fail") continue;
        await letEverythingArrive(harness);
        expect(await faultsAfterSettling(harness)).toEqual([]);
      } finally {
        await harness.stop();
      }
    }
  });
  return {
    start: async (options = {}) => {
      const harness = await startHarness({ ...options, env: { ...PATIENT, ...options.env } });
      harnesses.push(harness);
      return harness;
    },
    gate: (point, skip = 0) => {
      const gate = new Gate(point, skip);
      gates.push(gate);
      return gate;
    },
  };
}

/** Whatever is still under way at the provider comes to its end, and nothing is injected any more. */
async function letEverythingArrive({ sandbox: { control } }: Harness): Promise<void> {
  await control.clearFaults();
  await control.openListener();
  await control.release();
}

/**
 * As SIGSTOP would: what the process is doing stands still at its gate, and it claims nothing more. Requests that
 * wait in it are let go, so the test sends its own through another.
 */
export function freeze(process: Pawl): void {
  void process.drain(0);
}

/** The provider's log as short words, in order of receipt: `create 200`, `list 200`, `confirm -` (cut off), … */
export async function wireOf(harness: Harness, filter: RequestFilter = {}): Promise<string[]> {
  const log = await harness.sandbox.control.listRequests(filter);
  return log.filter((entry) => entry.call !== "account.retrieve").map(wordsOf);
}

function wordsOf(entry: LoggedRequest): string {
  const call = (entry.call ?? entry.path).replace("payment_intents.", "").replace("cancel", "fence");
  return `${call} ${entry.status ?? "-"}${entry.replayed ? " replayed" : ""}`;
}

/** The object at the provider of the test's only payment. */
export async function onlyObject(harness: Harness) {
  const objects = await harness.sandbox.control.listPaymentIntents();
  expect(objects).toHaveLength(1);
  const [object] = objects;
  if (object === undefined) throw new Error("there is no object");
  return object;
}
