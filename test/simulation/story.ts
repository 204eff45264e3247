import { createHash } from "node:crypto";

/** Ids that are drawn at random by the product, and so differ from one run of a seed to the next. */
const IDS = /\b(pay|re|evt|tl|rev|we|req|att|rec)_[0-9a-f]{32}\b/g;

/** What happened, line by line. Ids are shown by the order in which they first came up, so a seed tells one story. */
export class Story {
  readonly #lines: string[] = [];
  readonly #names = new Map<string, string>();
  readonly #counts = new Map<string, number>();

  tell(atMs: number, line: string): void {
    this.#lines.push(`${(atMs / 1_000).toFixed(3)} ${this.named(line)}`);
  }

  /** The text with short names for ids. */
  named(text: string): string {
    return text.replace(IDS, (id, prefix: string) => {
      const known = this.#names.get(id);
      if (known !== undefined) return known;
      const count = (this.#counts.get(prefix) ?? 0) + 1;
      this.#counts.set(prefix, count);
      const name = `${prefix}#${String(count)}`;
      this.#names.set(id, name);
      return name;
    });
  }

  get lines(): readonly string[] {
    return this.#lines;
  }

  /** The same for two runs in which the same things happened. */
  digest(): string {
    return createHash("sha256").update(this.#lines.join("\n")).digest("hex");
  }
}
