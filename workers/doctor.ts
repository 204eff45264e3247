import type { Worker } from "./worker.js";

/**
 * Looks in the rows for what must never be: docs/doctor.md. Reads only, so any number may run; one process is enough.
 */
export const doctor: Worker = {
  name: "doctor",
  intervalMs: (deps) => deps.settings.doctorIntervalMs,
  runOnce: async (deps) => {
    await deps.doctor.round();
    return false;
  },
};
