/** Numbers drawn from one seed: the same seed draws the same ones, on any machine. xoshiro128** (Blackman, Vigna). */
export class Random {
  readonly #state: Uint32Array;

  /** `stream`: another name draws other numbers, so that one use does not disturb the next. */
  constructor(seed: number, stream: string) {
    let mixed = (seed >>> 0) ^ Math.imul(Math.floor(seed / 2 ** 32) + 1, 0x9e3779b1);
    for (const character of stream) mixed = Math.imul(mixed ^ character.charCodeAt(0), 0x85ebca6b) >>> 0;
    this.#state = Uint32Array.from({ length: 4 }, () => {
      mixed = (mixed + 0x9e3779b9) >>> 0;
      let word = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad);
      word = Math.imul(word ^ (word >>> 15), 0x735a2d97);
      return (word ^ (word >>> 15)) >>> 0;
    });
  }

  /** From 0 (included) to 1 (excluded). */
  next(): number {
    const [a = 0, b = 0, c = 0, d = 0] = this.#state;
    const result = Math.imul(rotated(Math.imul(b, 5), 7), 9) >>> 0;
    const third = c ^ a;
    const fourth = d ^ b;
    this.#state[0] = a ^ fourth;
    this.#state[1] = b ^ third;
    this.#state[2] = third ^ (b << 9);
    this.#state[3] = rotated(fourth, 11);
    return result / 2 ** 32;
  }

  /** A whole number, both bounds included. */
  whole(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(from: readonly [T, ...T[]] | readonly T[]): T {
    const chosen = from[this.whole(0, from.length - 1)];
    if (chosen === undefined) throw new Error("nothing to pick from");
    return chosen;
  }

  /** One of the names, as often as its weight says. */
  weighted<Name extends string>(weights: Readonly<Partial<Record<Name, number>>>): Name {
    const entries = Object.entries(weights) as [Name, number][];
    const total = entries.reduce((sum, [, weight]) => sum + weight, 0);
    let left = this.next() * total;
    for (const [name, weight] of entries) {
      left -= weight;
      if (left < 0) return name;
    }
    const [first] = entries;
    if (first === undefined) throw new Error("nothing to choose from");
    return first[0];
  }

  /** Milliseconds between the two, small ones as likely as large ones: the logarithm is even. */
  duration(leastMs: number, mostMs: number): number {
    return Math.round(leastMs * (mostMs / leastMs) ** this.next());
  }
}

function rotated(word: number, bits: number): number {
  return (word << bits) | (word >>> (32 - bits));
}
