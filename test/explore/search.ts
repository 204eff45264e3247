import { NotYet } from "./refs.js";

/** A state machine to be searched. States with the same key are the same state. */
export interface Searchable<State, Step> {
  readonly initial: State;
  keyOf(state: State): string;
  /** Calls `to` with every state that one step leads to. May throw NotYet, and is then called again. */
  follow(state: State, to: (next: State, step: Step) => void): void;
  /** What a step has broken, whatever it led to; null where nothing. */
  faultOfStep(step: Step): string | null;
  /** What is broken in a state; null where nothing is. */
  faultOf(state: State): string | null;
}

export interface Found<State, Step> {
  /** What is broken, in words. */
  readonly fault: string;
  /** The shortest way there, with the state that each step led to. */
  readonly trace: readonly { readonly step: Step; readonly state: State }[];
}

export interface Explored<State, Step> {
  /** The first broken invariant; null where every state keeps them all. */
  readonly found: Found<State, Step> | null;
  readonly states: number;
  readonly steps: number;
  /** Steps from the start to the state that is farthest from it. */
  readonly depth: number;
  /** Whether states were left out, because of `limits`. */
  readonly complete: boolean;
  readonly seconds: number;
}

export interface Limits {
  readonly depth?: number;
  readonly states?: number;
}

/** Breadth first, so that the first fault that is found is one of those with the shortest trace. */
export async function search<State, Step>(
  machine: Searchable<State, Step>,
  limits: Limits = {},
): Promise<Explored<State, Step>> {
  const began = performance.now();
  const run = new Search(machine, limits);
  const found = await run.toTheEnd();
  const { states, steps, depth, complete } = run;
  return { found, states, steps, depth, complete, seconds: (performance.now() - began) / 1_000 };
}

interface Known<State> {
  readonly state: State;
  readonly at: number;
}

class Search<State, Step> {
  readonly #known = new Set<string>();
  /** For the n-th state: which state it was first reached from, and as which of that one's followers. */
  readonly #from: number[] = [];
  readonly #branch: number[] = [];
  #frontier: Known<State>[] = [];
  #next: Known<State>[] = [];
  steps = 0;
  depth = 0;
  complete = true;

  constructor(
    private readonly machine: Searchable<State, Step>,
    private readonly limits: Limits,
  ) {}

  get states(): number {
    return this.#known.size;
  }

  async toTheEnd(): Promise<Found<State, Step> | null> {
    const { initial } = this.machine;
    this.#add(initial, -1, -1);
    const fault = this.machine.faultOf(initial);
    if (fault !== null) return { fault, trace: [] };
    while (this.#next.length > 0) {
      if (this.depth >= (this.limits.depth ?? Number.POSITIVE_INFINITY)) {
        this.complete = false;
        return null;
      }
      this.#frontier = this.#next;
      this.#next = [];
      for (const known of this.#frontier) {
        const found = await this.#expand(known);
        if (found !== null) return found;
        if (this.states >= (this.limits.states ?? Number.POSITIVE_INFINITY)) {
          this.complete = false;
          return null;
        }
      }
      if (this.#next.length > 0) this.depth += 1;
    }
    return null;
  }

  async #expand(from: Known<State>): Promise<Found<State, Step> | null> {
    for (;;) {
      try {
        const fault = this.#follow(from);
        return fault === null ? null : { ...fault, trace: [...(await this.#traceOf(from.at)), fault.last] };
      } catch (error) {
        // What was found up to here is known by now: it is passed over when the state is followed again.
        if (!(error instanceof NotYet)) throw error;
        await error.ready;
      }
    }
  }

  #follow(from: Known<State>): { readonly fault: string; readonly last: { step: Step; state: State } } | null {
    let broken: { readonly fault: string; readonly last: { step: Step; state: State } } | null = null;
    let branch = 0;
    this.machine.follow(from.state, (state, step) => {
      const isNew = this.#add(state, from.at, branch);
      branch += 1;
      if (broken !== null) return;
      const fault = this.machine.faultOfStep(step) ?? (isNew ? this.machine.faultOf(state) : null);
      if (fault !== null) broken = { fault, last: { step, state } };
    });
    this.steps += branch;
    return broken;
  }

  /** Whether the state is new. */
  #add(state: State, from: number, branch: number): boolean {
    const before = this.#known.size;
    this.#known.add(this.machine.keyOf(state));
    if (this.#known.size === before) return false;
    this.#from.push(from);
    this.#branch.push(branch);
    this.#next.push({ state, at: before });
    return true;
  }

  /** States behind the frontier are not kept: the way is gone again. */
  async #traceOf(at: number): Promise<{ step: Step; state: State }[]> {
    const branches: number[] = [];
    for (let here = at; here > 0; here = this.#from[here] ?? -1) branches.unshift(this.#branch[here] ?? -1);
    const trace: { step: Step; state: State }[] = [];
    let state = this.machine.initial;
    for (const branch of branches) {
      const taken = (await followersOf(this.machine, state))[branch];
      if (taken === undefined) throw new Error("the way to a state was not found again");
      trace.push(taken);
      state = taken.state;
    }
    return trace;
  }
}

export async function followersOf<State, Step>(
  machine: Searchable<State, Step>,
  state: State,
): Promise<{ readonly state: State; readonly step: Step }[]> {
  for (;;) {
    const followers: { state: State; step: Step }[] = [];
    try {
      machine.follow(state, (next, step) => void followers.push({ state: next, step }));
      return followers;
    } catch (error) {
      if (!(error instanceof NotYet)) throw error;
      await error.ready;
    }
  }
}
