/** What our processes sent and asked, and what they saw come back, in order. */

export interface SentCall {
  readonly type: "send";
  readonly began: number;
  readonly atMs: number;
  readonly key: string;
  /** Whose credential it carried. */
  readonly account: string;
  readonly call: string;
  readonly process: string;
  /** What must be asked about before another send: an object's id, or the attempt's. */
  readonly about: string;
  /** Its process cannot know yet that rows were lost. */
  readonly isUnaware: boolean;
  /** `unexecuted`: refused before execution. Null: nobody lived to see it. */
  seen: "unexecuted" | "answered" | "unknown" | null;
}

export interface Asked {
  readonly type: "question";
  readonly began: number;
  readonly about: string;
  /** Its place in the order of things; null: not answered to anybody who lived. */
  answered: number | null;
}

export class WireLog {
  readonly entries: (SentCall | Asked)[] = [];
  #order = 0;

  get sends(): SentCall[] {
    return this.entries.filter((entry) => entry.type === "send");
  }

  send(sent: Omit<SentCall, "type" | "began" | "seen">): SentCall {
    const entry: SentCall = { ...sent, type: "send", began: this.#next(), seen: null };
    this.entries.push(entry);
    return entry;
  }

  ask(about: string): Asked {
    const entry: Asked = { type: "question", began: this.#next(), about, answered: null };
    this.entries.push(entry);
    return entry;
  }

  answer(asked: Asked): void {
    asked.answered = this.#next();
  }

  /**
   * A re-send needs no question only if every earlier send of that call was refused before execution: a sentence for each send that followed another of its key without an answered question in between.
   * `isForgotten`: what was sent earlier was lost with its row, as far as the later sender can know.
   */
  unaskedSends(isForgotten: (earlier: SentCall, send: SentCall) => boolean): string[] {
    const faults: string[] = [];
    const { sends } = this;
    const questions = this.entries.filter((entry) => entry.type === "question");
    sends.forEach((send, at) => {
      const open = sends.slice(0, at).find((earlier) => {
        if (earlier.key !== send.key || earlier.seen === "unexecuted") return false;
        if (isForgotten(earlier, send)) return false;
        return !questions.some(
          (asked) =>
            asked.about === send.about &&
            asked.began > earlier.began &&
            asked.answered !== null &&
            asked.answered < send.began,
        );
      });
      if (open !== undefined) {
        const ended = open.seen ?? "never seen";
        faults.push(
          `${send.key} (${send.call} of ${send.about}) was sent by ${send.process} without a question after an earlier send by ${open.process} (${ended})`,
        );
      }
    });
    return faults;
  }

  /** Sends of a key after the time for which it guards them. A fence needs no guard: its object is canceled once. */
  lateSends(keyLifetimeMs: number, isForgotten: (first: SentCall, send: SentCall) => boolean): string[] {
    const firsts = new Map<string, SentCall>();
    const faults: string[] = [];
    for (const entry of this.entries) {
      if (entry.type !== "send" || entry.key.includes(":fence")) continue;
      const known = firsts.get(entry.key);
      const first = known === undefined || isForgotten(known, entry) ? entry : known;
      firsts.set(entry.key, first);
      if (entry.atMs - first.atMs > keyLifetimeMs)
        faults.push(`${entry.key} was sent when it guarded nothing any more`);
    }
    return faults;
  }

  #next(): number {
    this.#order += 1;
    return this.#order;
  }
}
