import { Counter, Gauge, Histogram } from "prom-client";
import { ATTEMPT_STATES } from "../domain/attempt.js";
import type { Deps, Meter } from "../operations/deps.js";
import { readBacklog } from "../operations/read-backlog.js";
import { registry } from "./metrics.js";

/** From a local sandbox to the provider timeout's upper end. */
const BUCKETS_SECONDS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 60];

const calls = new Histogram({
  name: "pawl_provider_call_duration_seconds",
  help: "Provider calls and questions by kind and by what the answer came to.",
  labelNames: ["call", "outcome"],
  buckets: BUCKETS_SECONDS,
  registers: [registry],
});
const moved = new Counter({
  name: "pawl_payments_moved_total",
  help: "Payments that entered a status, written by this process.",
  labelNames: ["status"],
  registers: [registry],
});
const lost = new Counter({
  name: "pawl_attempts_lost_total",
  help: "Writes refused by the fence: another worker had taken the attempt over.",
  registers: [registry],
});
const attempts = new Gauge({
  name: "pawl_attempts_open",
  help: "Attempts with something left to do, by state; of the whole database.",
  labelNames: ["state"],
  registers: [registry],
});
const overdue = new Gauge({
  name: "pawl_attempts_overdue_seconds",
  help: "How long the longest overdue attempt that no worker holds has been due; of the whole database.",
  registers: [registry],
});
const unknown = new Gauge({
  name: "pawl_outcomes_unknown",
  help: "Attempts whose outcome at the provider is not known; of the whole database.",
  registers: [registry],
});
const reviews = new Gauge({
  name: "pawl_reviews_open",
  help: "Reviews that wait for a person; of the whole database.",
  registers: [registry],
});

const uncounted = new Gauge({
  name: "pawl_ledger_entries_uncounted",
  help: "Ledger entries not yet counted into the balances, which are exact all the same; of the whole database.",
  registers: [registry],
});

const eventSteps = new Counter({
  name: "pawl_provider_events_total",
  help: "The provider's events by what this process did with them: received, or tried.",
  labelNames: ["step"],
  registers: [registry],
});
const events = new Gauge({
  name: "pawl_provider_events_open",
  help: "The provider's events that are not applied: waiting, or parked for a person; of the whole database.",
  labelNames: ["state"],
  registers: [registry],
});
const eventsOverdue = new Gauge({
  name: "pawl_provider_events_overdue_seconds",
  help: "How long the longest overdue event of the provider's has been due; of the whole database.",
  registers: [registry],
});

const deliveryTries = new Counter({
  name: "pawl_delivery_tries_total",
  help: "Tries of deliveries to webhook endpoints and to the broker, by what they came to; of this process.",
  labelNames: ["target", "outcome"],
  registers: [registry],
});
const deliveries = new Gauge({
  name: "pawl_deliveries_pending",
  help: "Deliveries of events that have not ended; of the whole database.",
  registers: [registry],
});
const deliveriesOverdue = new Gauge({
  name: "pawl_deliveries_overdue_seconds",
  help: "How long the longest overdue delivery has been due; of the whole database.",
  registers: [registry],
});
const unrelayed = new Gauge({
  name: "pawl_events_unrelayed",
  help: "Events that no delivery has been made of yet; of the whole database.",
  registers: [registry],
});

const findings = new Gauge({
  name: "pawl_reconciliation_findings_open",
  help: "Differences between our rows and the provider's objects that stand; of the whole database.",
  registers: [registry],
});
const comparedAge = new Gauge({
  name: "pawl_reconciliation_age_seconds",
  help: "Since the end of what was last compared with the provider; NaN before the first; of the whole database.",
  registers: [registry],
});
const recovering = new Gauge({
  name: "pawl_recovering",
  help: "1 while nothing is sent, since the database was restored or failed over; of the whole database.",
  registers: [registry],
});

const violations = new Gauge({
  name: "pawl_invariant_violations",
  help: "What breaks an invariant, by the last look of this process's doctor; of the whole database.",
  labelNames: ["invariant"],
  registers: [registry],
});
let doctorRoundAtMs = Number.NaN;
new Gauge({
  name: "pawl_doctor_age_seconds",
  help: "Since this process's doctor last ended a look; NaN before the first, and where it does not run.",
  registers: [registry],
  collect() {
    this.set((performance.now() - doctorRoundAtMs) / 1_000);
  },
});

/** What the doctor has found. A look that could not be made leaves it as it was, and older. */
export function showDoctorRound({ counts }: { readonly counts: ReadonlyMap<string, number> }): void {
  for (const [invariant, count] of counts) violations.set({ invariant }, count);
  doctorRoundAtMs = performance.now();
}

export const meter: Meter = {
  providerCall: (call, outcome, seconds) => calls.observe({ call, outcome }, seconds),
  paymentMoved: (status) => moved.inc({ status }),
  attemptLost: () => lost.inc(),
  deliveryTried: (target, outcome) => deliveryTries.inc({ target, outcome }),
  providerEvent: (step) => eventSteps.inc({ step }),
};

/** Brings the gauges up to date. With the database away they keep their last values, and the scrape still works. */
export async function refreshBacklog(deps: Deps): Promise<void> {
  try {
    const backlog = await readBacklog(deps);
    for (const state of ATTEMPT_STATES) attempts.set({ state }, backlog.attemptsByState.get(state) ?? 0);
    overdue.set(backlog.longestOverdueSeconds);
    unknown.set(backlog.unknownOutcomes);
    reviews.set(backlog.openReviews);
    deliveries.set(backlog.pendingDeliveries);
    deliveriesOverdue.set(backlog.longestOverdueDeliverySeconds);
    unrelayed.set(backlog.unrelayedEvents);
    uncounted.set(backlog.uncountedEntries);
    events.set({ state: "pending" }, backlog.pendingEvents);
    events.set({ state: "parked" }, backlog.parkedEvents);
    findings.set(backlog.openFindings);
    comparedAge.set(backlog.secondsSinceCompared ?? Number.NaN);
    recovering.set(backlog.isRecovering ? 1 : 0);
    eventsOverdue.set(backlog.longestOverdueEventSeconds);
  } catch (error) {
    deps.log.warn({ err: error }, "the backlog could not be read for the metrics");
  }
}
