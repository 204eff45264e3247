import { Random } from "../simulation/random.js";

/** Everything that can happen to the system, one at a time. */
export const BLOWS = [
  "kill_api",
  "kill_worker",
  "kill_both_workers",
  "kill_sandbox",
  "kill_session",
  "kill_postgres",
  "kill_everything",
  "restart_postgres_fast",
  "restart_postgres_immediate",
  "end_sessions",
  "close_provider",
  "kill_worker_while_provider_is_closed",
  "freeze_worker",
  "freeze_provider",
  "stop_api",
  "stop_worker",
] as const;
export type BlowName = (typeof BLOWS)[number];

export interface Blow {
  readonly name: BlowName;
  /** Which of the two, where there are two. */
  readonly at: 0 | 1;
  /** How long what it takes away stays away. */
  readonly awayMs: number;
}

const LEAST_AWAY_MS = 50;
const MOST_AWAY_MS = 3_000;

/** Blows without an end, drawn from a seed: each kind comes once before any comes again. */
export function* drawBlows(seed: number): Generator<Blow, never> {
  const random = new Random(seed, "blows");
  for (;;) {
    const deck: BlowName[] = [...BLOWS];
    while (deck.length > 0) {
      const name = random.pick(deck);
      deck.splice(deck.indexOf(name), 1);
      yield { name, at: random.chance(0.5) ? 0 : 1, awayMs: random.duration(LEAST_AWAY_MS, MOST_AWAY_MS) };
    }
  }
}
