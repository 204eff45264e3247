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
  /** No process is started before. */
  readonly nightUntilMs: number;
  anyProcess(): SimulatedProcess | null;
  /** What must not be. */
  fault(sentence: string): void;
  unlessPassing(error: unknown, what: string): void;
  hadEffect(name: string, byMs: number): Promise<boolean>;
  paymentOfKey(tenantId: string, key: string): Promise<{ id: string; status: string } | null>;
}
