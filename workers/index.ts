import { attempts } from "./attempts.js";
import { reaper } from "./reaper.js";
import { reconciler } from "./reconciler.js";
import type { Worker } from "./worker.js";

export const WORKERS: Readonly<Record<Worker["name"], Worker>> = { attempts, reconciler, reaper };
