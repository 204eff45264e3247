import type { Random } from "./random.js";

/** How one request to the provider may end. */
export type RequestFate =
  | "fine"
  /** No connection. */
  | "refused"
  | "rate_limited"
  | "unauthorized"
  /** Sent, and never arrives. */
  | "lost_before"
  /** Arrives, and its answer does not. */
  | "lost_after"
  /** Given up by its sender, and arrives afterwards. */
  | "late"
  | "unreadable"
  /** A 502 of something on the way back, after the effect. */
  | "bad_gateway"
  /** A 503 of something on the way there. */
  | "unavailable"
  /** Runs for a while: meanwhile its key is in use and its object locked. */
  | "slow";

export type StatementFate = "fine" | "cut_before" | "cut_after" | "rolled_back";
export type DeliveryFate = "fine" | "refused" | "error" | "lost_after" | "timeout";

/** How often things go wrong. Probabilities, and weights of fates. */
export interface Weather {
  readonly requests: Readonly<Record<RequestFate, number>>;
  readonly statements: Readonly<Record<StatementFate, number>>;
  readonly deliveries: Readonly<Record<DeliveryFate, number>>;
  /** Of an answered POST: the provider stores a 500 for it. */
  readonly storedErrors: number;
  /** At each step of a process: it dies there. */
  readonly deaths: number;
  /** At each step of a process: it stands still for a while. */
  readonly freezes: number;
  readonly noticesTwice: number;
  readonly noticesLate: number;
  readonly noticesLost: number;
}

const FINE_REQUESTS = {
  fine: 1,
  refused: 0,
  rate_limited: 0,
  unauthorized: 0,
  lost_before: 0,
  lost_after: 0,
  late: 0,
  unreadable: 0,
  bad_gateway: 0,
  unavailable: 0,
  slow: 0,
};

export const CALM: Weather = {
  requests: FINE_REQUESTS,
  statements: { fine: 1, cut_before: 0, cut_after: 0, rolled_back: 0 },
  deliveries: { fine: 1, refused: 0, error: 0, lost_after: 0, timeout: 0 },
  storedErrors: 0,
  deaths: 0,
  freezes: 0,
  noticesTwice: 0,
  noticesLate: 0,
  noticesLost: 0,
};

/** While the provider is down: hardly anything gets through. */
export const OUTAGE: Weather["requests"] = {
  ...FINE_REQUESTS,
  fine: 0,
  refused: 6,
  unavailable: 2,
  lost_before: 1,
  late: 1,
};

/** Each kind of fault is absent, rare or common, drawn one by one: what only shows without the others shows, too. */
export function drawWeather(random: Random): Weather {
  const some = (rare: number, common: number) => random.pick([0, rare, common]);
  return {
    requests: {
      fine: 100,
      refused: some(3, 15),
      rate_limited: some(3, 15),
      unauthorized: some(0, 3),
      lost_before: some(3, 15),
      lost_after: some(4, 20),
      late: some(4, 20),
      unreadable: some(2, 8),
      bad_gateway: some(2, 10),
      unavailable: some(2, 10),
      slow: some(5, 20),
    },
    statements: {
      fine: 1_000,
      cut_before: some(3, 15),
      cut_after: some(3, 15),
      rolled_back: some(2, 10),
    },
    deliveries: {
      fine: 10,
      refused: some(1, 5),
      error: some(1, 5),
      lost_after: some(1, 4),
      timeout: some(1, 3),
    },
    storedErrors: some(0.01, 0.06),
    deaths: some(0.0015, 0.006),
    freezes: some(0.001, 0.004),
    noticesTwice: some(0.1, 0.4),
    noticesLate: some(0.1, 0.4),
    noticesLost: some(0.05, 0.3),
  };
}
