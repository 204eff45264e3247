import { Counter, collectDefaultMetrics, Histogram, Registry } from "prom-client";
import { systemClock } from "../lib/clock.js";

/** What the operator's /metrics shows. Other parts of the process add their own gauges to it. */
export const registry = new Registry();

/** Before the monitor of the event loop has ticked twice it has nothing to show. */
const FIRST_SIGHT_MS = 50;
let observing: Promise<void> | null = null;

/**
 * Node's own metrics, from the first scrape on: the monitor of the event loop wakes a process a hundred times a second,
 * which is more than all else that an idle one does. Resolves when there is something to show.
 */
export function observeNode(): Promise<void> {
  observing ??= beginToObserve();
  return observing;
}

async function beginToObserve(): Promise<void> {
  collectDefaultMetrics({ register: registry });
  await systemClock.sleep(FIRST_SIGHT_MS);
}

const LABELS = ["method", "route", "status"] as const;
/** From a replay's fraction of a millisecond to the longest wait a caller may ask for. */
const BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

const requests = new Counter({
  name: "pawl_http_requests_total",
  help: "Answered HTTP requests by method, route pattern and status.",
  labelNames: LABELS,
  registers: [registry],
});
const durations = new Histogram({
  name: "pawl_http_request_duration_seconds",
  help: "From the request's headers to its answer, waiting for an outcome included.",
  labelNames: LABELS,
  buckets: BUCKETS_SECONDS,
  registers: [registry],
});

interface Series {
  readonly requests: Counter.Internal;
  readonly durations: Histogram.Internal<(typeof LABELS)[number]>;
}

/** Looking a child up by its labels costs more than counting; methods, patterns and statuses are few. */
const children = new Map<string, Series>();

/** `route` is the pattern, never the path: labels must stay few. */
export function countRequest(method: string, route: string, status: number, seconds: number): void {
  const name = `${method} ${route} ${status}`;
  let child = children.get(name);
  if (child === undefined) {
    const labels = { method, route, status: String(status) };
    child = { requests: requests.labels(labels), durations: durations.labels(labels) };
    children.set(name, child);
  }
  child.requests.inc();
  child.durations.observe(seconds);
}
