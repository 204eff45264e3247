import type { WorkerDeps } from "../../workers/worker.js";
import type { Loss } from "./loss.js";
import type { ProviderModel } from "./provider-model.js";
import type { Random } from "./random.js";
import type { Scheduler } from "./scheduler.js";
import type { SimulatedProcess } from "./simulated-process.js";
import type { Weather } from "./weather.js";

/** What merchants, customers, notices and pollers see of the world that they act in. */
export interface Surroundings {
  readonly scheduler: Scheduler;
  readonly random: { readonly world: Random; readonly merchants: Random; readonly processes: Random };
  readonly model: ProviderModel;
  readonly weather: () => Weather;
  readonly isCalm: boolean;
  /** Of the provider, whose credential processes have now. */
  readonly account: string;
  readonly accountSinceMs: number;
  /** No process is started before. */
  readonly nightUntilMs: number;
  readonly polling: { wakeOnce(worker: "attempts", inMs: number): void; wrote(): void };
  readonly merchants: { forget(loss: Loss): void; askAgain(): void };
  /** Null: no rows are lost in this seed. */
  readonly restore: { readonly loss: Loss | null } | null;
  readonly people: { expect(reviewIds: readonly string[]): void };
  isLostReview(reviewId: string): boolean;
  /** Something that the provider now shows comes to a worker's eyes at about this moment. */
  makeFact(attemptId: string): void;
  /** The objects that were made for it, at the dashboard. */
  putRight(attemptId: string): void;
  killAll(): void;
  /** After a move of the database all look where it is. */
  watchDatabases(): void;
  /** A process of a person's at the command line, which ends with its work, done or not. */
  asOperator(command: string, work: (deps: WorkerDeps) => Promise<unknown>): void;
  anyProcess(): SimulatedProcess | null;
  /** What must not be. */
  fault(sentence: string): void;
  unlessPassing(error: unknown, what: string): void;
  hadEffect(name: string, byMs: number): Promise<boolean>;
  paymentOfKey(tenantId: string, key: string): Promise<{ id: string; status: string } | null>;
}
