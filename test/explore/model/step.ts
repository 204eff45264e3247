import type { World } from "./world.js";

/** One step of the world, told when it is asked for. */
export interface Step {
  readonly says: () => string;
  /** What the step itself has broken, in words. */
  readonly fault: string | null;
  /** It comes by itself: a worker, or time, and nothing has gone wrong. */
  readonly isProgress: boolean;
}

/** Takes the states that one step leads to. */
export type To = (next: World, says: () => string, fault?: string | null) => void;
