import { attempts } from "./attempts.js";
import { comparison } from "./comparison.js";
import { doctor } from "./doctor.js";
import { ledger } from "./ledger.js";
import { providerEvents } from "./provider-events.js";
import { reaper } from "./reaper.js";
import { reconciler } from "./reconciler.js";
import { relay } from "./relay.js";
import { webhooks } from "./webhooks.js";
import type { Worker } from "./worker.js";

export const WORKERS: Readonly<Record<Worker["name"], Worker>> = {
  attempts,
  reconciler,
  comparison,
  "provider-events": providerEvents,
  relay,
  webhooks,
  ledger,
  reaper,
  doctor,
};
