import type { SeedReport } from "./run-seed.js";

const DIES = / dies (?!at the end of pawl )/;
const CUT = / db \w+ \((cut_before|cut_after|rolled_back)\)$/;
const DELIVERED = / gets (evt#\d+)/;

/** How much there was in all seeds so far: "no fault" alone does not tell whether anything was tried. */
export class Sums {
  readonly #sums = { intents: 0, refunds: 0, "process deaths": 0, "database cuts": 0, events: 0 };

  add({ counts, story }: Pick<SeedReport, "counts" | "story">): void {
    this.#sums.intents += counts["intents"] ?? 0;
    this.#sums.refunds += counts["refunds"] ?? 0;
    this.#sums["process deaths"] += story.filter((line) => DIES.test(line)).length;
    this.#sums["database cuts"] += story.filter((line) => CUT.test(line)).length;
    this.#sums.events += new Set(story.flatMap((line) => DELIVERED.exec(line)?.[1] ?? [])).size;
  }

  toString(): string {
    return Object.entries(this.#sums)
      .map(([name, count]) => `${name} ${String(count)}`)
      .join(", ");
  }
}
