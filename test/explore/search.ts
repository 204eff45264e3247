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
  /** Whether nothing is left to do in a state, or it waits for somebody who may never come. */
  isEnd(state: State): boolean;
  /** Whether the step comes by itself, with nothing going wrong and nobody doing anybody a favour. */
  isProgress(step: Step): boolean;
}

export interface Taken<State, Step> {
  readonly step: Step;
  readonly state: State;
}

export interface Found<State, Step> {
  /** What is broken, in words. */
  readonly fault: string;
  /** The shortest way there, with the state that each step led to. */
  readonly trace: readonly Taken<State, Step>[];
}

export interface Explored<State, Step> {
  /** The first broken invariant; null where every state keeps them all. */
  readonly found: Found<State, Step> | null;
  readonly states: number;
  readonly steps: number;
  /** Steps from the start to the state that is farthest from it. */
  readonly depth: number;
  /** Whether every state was looked at: nothing was found, and no limit was met. */
  readonly complete: boolean;
  readonly seconds: number;
}

export interface Limits {
  readonly depth?: number;
  readonly states?: number;
}

/**
 * Breadth first, so that the first fault that is found is one of those with the shortest trace. Where all states are
 * sound, each of them must also be able to come to an end by progress alone.
 */
export async function search<State, Step>(
  machine: Searchable<State, Step>,
  limits: Limits = {},
): Promise<Explored<State, Step>> {
  const began = performance.now();
  const run = new Search(machine, limits);
  const found = await run.toTheEnd();
  const { states, steps, depth } = run;
  const complete = run.complete && found === null;
  return { found, states, steps, depth, complete, seconds: (performance.now() - began) / 1_000 };
}

interface Known<State> {
  readonly state: State;
  readonly at: number;
}

type Broken<State, Step> = { readonly fault: string; readonly last: Taken<State, Step> };

class Search<State, Step> {
  readonly #known = new Map<string, number>();
  /** For the n-th state: which state it was first reached from, and as which of that one's followers. */
  readonly #from: number[] = [];
  readonly #branch: number[] = [];
  readonly #ends: number[] = [];
  /** Pairs of states: the second is reached from the first by progress. */
  readonly #progress: number[] = [];
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
      const frontier = this.#next;
      this.#next = [];
      for (const known of frontier) {
        const found = await this.#expand(known);
        if (found !== null) return found;
        if (this.states >= (this.limits.states ?? Number.POSITIVE_INFINITY)) {
          this.complete = false;
          return null;
        }
      }
      if (this.#next.length > 0) this.depth += 1;
    }
    return this.#endless();
  }

  async #expand(from: Known<State>): Promise<Found<State, Step> | null> {
    for (;;) {
      try {
        const broken = this.#follow(from);
        if (broken === null) return null;
        return { fault: broken.fault, trace: [...(await this.#traceOf(from.at)), broken.last] };
      } catch (error) {
        // What was found up to here is known by now: it is passed over when the state is followed again.
        if (!(error instanceof NotYet)) throw error;
        await error.ready;
      }
    }
  }

  #follow(from: Known<State>): Broken<State, Step> | null {
    const { machine } = this;
    const broken: Broken<State, Step>[] = [];
    let branch = 0;
    machine.follow(from.state, (state, step) => {
      const before = this.states;
      const at = this.#add(state, from.at, branch);
      branch += 1;
      if (machine.isProgress(step)) this.#progress.push(from.at, at);
      if (broken.length > 0) return;
      const fault = machine.faultOfStep(step) ?? (at === before ? machine.faultOf(state) : null);
      if (fault !== null) broken.push({ fault, last: { step, state } });
    });
    this.steps += branch;
    return broken[0] ?? null;
  }

  /** The state's number; a new one is followed later. */
  #add(state: State, from: number, branch: number): number {
    const key = this.machine.keyOf(state);
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const at = this.#known.size;
    this.#known.set(key, at);
    this.#from.push(from);
    this.#branch.push(branch);
    if (this.machine.isEnd(state)) this.#ends.push(at);
    this.#next.push({ state, at });
    return at;
  }

  /** A state from which no end is reached by progress alone. */
  async #endless(): Promise<Found<State, Step> | null> {
    const reaches = reachedBackwards(this.states, this.#ends, this.#progress);
    const at = reaches.indexOf(0);
    return at < 0 ? null : { fault: "from here it never ends by itself", trace: await this.#traceOf(at) };
  }

  /** States behind the frontier are not kept: the way is gone again. */
  async #traceOf(at: number): Promise<Taken<State, Step>[]> {
    const branches: number[] = [];
    for (let here = at; here > 0; here = this.#from[here] ?? -1) branches.unshift(this.#branch[here] ?? -1);
    const trace: Taken<State, Step>[] = [];
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

/** 1 for every state from which one of `ends` is reached along `edges`, which are pairs. */
function reachedBackwards(states: number, ends: readonly number[], edges: readonly number[]): Uint8Array {
  const first = new Int32Array(states).fill(-1);
  const next = new Int32Array(edges.length / 2);
  for (let edge = 0; edge < next.length; edge += 1) {
    const to = edges[2 * edge + 1] ?? 0;
    next[edge] = first[to] ?? -1;
    first[to] = edge;
  }
  const reaches = new Uint8Array(states);
  const open = [...ends];
  for (const end of ends) reaches[end] = 1;
  for (let state = open.pop(); state !== undefined; state = open.pop()) {
    for (let edge = first[state] ?? -1; edge >= 0; edge = next[edge] ?? -1) {
      const from = edges[2 * edge] ?? 0;
      if (reaches[from] === 1) continue;
      reaches[from] = 1;
      open.push(from);
    }
  }
  return reaches;
}

export async function followersOf<State, Step>(
  machine: Searchable<State, Step>,
  state: State,
): Promise<Taken<State, Step>[]> {
  for (;;) {
    const followers: Taken<State, Step>[] = [];
    try {
      machine.follow(state, (next, step) => void followers.push({ state: next, step }));
      return followers;
    } catch (error) {
      if (!(error instanceof NotYet)) throw error;
      await error.ready;
    }
  }
}
