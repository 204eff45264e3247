import type { Blow, BlowName } from "./blows.js";
import { type ChaosSystem, LEASE_MS, type PawlProcess } from "./system.js";

/** Far enough past a lease for others to have taken over what it covered. */
const PAST_THE_LEASE_MS = LEASE_MS + 1_000;
/** Past the deadline of every call that waits for it. */
const FROZEN_MS = 1_500;

type Strike = (system: ChaosSystem, blow: Blow) => Promise<unknown>;

/** Strikes; when it resolves, everything runs again. */
export async function strike(system: ChaosSystem, blow: Blow): Promise<void> {
  await STRIKES[blow.name](system, blow);
}

const STRIKES: Readonly<Record<BlowName, Strike>> = {
  kill_api: async (system, { at, awayMs }) => {
    await system.apis[at].crash();
    await away(awayMs);
    await system.startApi(at);
  },
  kill_worker: async (system, { at, awayMs }) => {
    await system.workers[at].crash();
    await away(awayMs);
    await system.startWorker(at);
  },
  kill_both_workers: async (system, { awayMs }) => {
    await Promise.all(system.workers.map((worker) => worker.crash()));
    await away(awayMs);
    await startWorkers(system);
  },
  kill_sandbox: (system, { awayMs }) => system.provider.crash(() => away(awayMs)),
  kill_session: (system) => system.database.killBackend(),
  kill_postgres: (system) => system.database.killServer(),
  kill_everything: async (system, { awayMs }) => {
    await system.provider.crash(async () => {
      await Promise.all([...system.apis, ...system.workers].map((one) => one.crash()));
      await system.database.killServer();
      await away(awayMs);
    });
    await Promise.all([system.startApi(0), system.startApi(1), startWorkers(system)]);
  },
  restart_postgres_fast: (system) => system.database.restart("fast"),
  restart_postgres_immediate: (system) => system.database.restart("immediate"),
  end_sessions: (system) => system.database.endSessions(),
  close_provider: (system, { awayMs }) => closed(system, () => away(awayMs)),
  kill_worker_while_provider_is_closed: (system, { at, awayMs }) =>
    closed(system, async () => {
      await system.workers[at].crash();
      await away(awayMs);
      await system.startWorker(at);
    }),
  freeze_worker: async (system, { at }) => {
    const worker = system.workers[at];
    worker.signal("SIGSTOP");
    await away(PAST_THE_LEASE_MS);
    worker.signal("SIGCONT");
    system.thawed.push(Date.now());
  },
  freeze_provider: async ({ provider }) => {
    provider.process.signal("SIGSTOP");
    await away(FROZEN_MS);
    provider.process.signal("SIGCONT");
  },
  stop_api: async (system, { at }) => {
    await gracefully(system, system.apis[at]);
    await system.startApi(at);
  },
  stop_worker: async (system, { at }) => {
    await gracefully(system, system.workers[at]);
    await system.startWorker(at);
  },
};

function away(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

async function startWorkers(system: ChaosSystem): Promise<void> {
  await Promise.all([system.startWorker(0), system.startWorker(1)]);
}

async function closed({ provider }: ChaosSystem, meanwhile: () => Promise<unknown>): Promise<void> {
  await provider.control.closeListener();
  await meanwhile();
  await provider.control.openListener();
}

/** SIGTERM: whatever is under way ends within the grace, and the exit says so. */
async function gracefully(system: ChaosSystem, one: PawlProcess): Promise<void> {
  const { code, signal } = await one.stop();
  if (code !== 0)
    system.morgue.unexpected.push(
      `${one.name}, asked to stop, ended with ${signal ?? String(code)}: ${one.log}`,
    );
}
