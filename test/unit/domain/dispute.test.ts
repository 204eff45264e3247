import { describe, expect, test } from "vitest";
import {
  advanceDispute,
  type DisputeAdvance,
  type DisputeReading,
  disputeDocument,
  hasOpenDispute,
  type KeptDispute,
} from "../../../src/domain/dispute.js";
import { postingsOf } from "../../../src/domain/ledger.js";
import { DISPUTE_STATUSES, type DisputeMovement, type DisputeStatus } from "../../../src/domain/provider.js";

const WITHDRAWN: DisputeMovement = { transactionId: "txn_1", amount: -1_000, currency: "usd", fee: 1_500 };
const REINSTATED: DisputeMovement = { transactionId: "txn_2", amount: 1_000, currency: "usd", fee: 0 };

function reading(
  status: DisputeStatus,
  movements: readonly DisputeMovement[] = [],
  changes: Partial<DisputeReading> = {},
): DisputeReading {
  return {
    id: "dp_1",
    chargeId: "pi_1",
    status,
    amount: 1_000,
    currency: "usd",
    reason: "fraudulent",
    livemode: false,
    movements,
    ...changes,
  };
}

/** Seconds after a fixed moment. */
const at = (seconds: number) => new Date(Date.UTC(2026, 10, 1) + seconds * 1_000);

/** A payment's disputes, and everything that their advances told and posted. */
class Books {
  disputes: readonly KeptDispute[] = [];
  readonly events: string[] = [];
  /** Facts as the ledger keeps them: once each. */
  readonly posted = new Map<string, number>();

  /** `beganAt`: when the reading was asked for; `now`: when it is written. In seconds. */
  read(one: DisputeReading, beganAt: number, now: number): DisputeAdvance["type"] {
    const advance = advanceDispute(this.disputes, one, { beganAt: at(beganAt), now: at(now) });
    if (advance.type !== "advanced") return advance.type;
    this.disputes = advance.disputes;
    this.events.push(...advance.events);
    for (const fact of advance.facts)
      for (const entry of postingsOf(fact)) {
        const name = `${entry.fact}/${entry.leg} ${entry.debitAccount}>${entry.creditAccount}`;
        if (!this.posted.has(name)) this.posted.set(name, entry.amount);
      }
    return "advanced";
  }

  /** Debits less credits. */
  sum(account: string): number {
    return [...this.posted].reduce((total, [name, amount]) => {
      const [, debit, credit] = /(\w+)>(\w+)$/.exec(name) ?? [];
      return total + (debit === account ? amount : 0) - (credit === account ? amount : 0);
    }, 0);
  }

  get end() {
    return {
      shown: this.disputes.map(disputeDocument),
      movements: this.disputes.map((one) => one.movements.map(({ transactionId }) => transactionId).sort()),
      posted: [...this.posted].sort(),
    };
  }
}

/** Lives of a dispute as the provider has it, step by step. */
const LIVES: Readonly<Record<string, readonly DisputeReading[]>> = {
  won: [
    reading("open"),
    reading("open", [WITHDRAWN]),
    reading("under_review", [WITHDRAWN]),
    reading("won", [WITHDRAWN, REINSTATED]),
  ],
  lost: [
    reading("open"),
    reading("open", [WITHDRAWN]),
    reading("under_review", [WITHDRAWN]),
    reading("lost", [WITHDRAWN]),
  ],
  "lost without an answer": [reading("open", [WITHDRAWN]), reading("lost", [WITHDRAWN])],
  "an inquiry that becomes a dispute": [
    reading("warning"),
    reading("open", [WITHDRAWN]),
    reading("under_review", [WITHDRAWN]),
    reading("lost", [WITHDRAWN]),
  ],
  "an inquiry that is closed": [reading("warning"), reading("closed")],
};

function permutations<T>(items: readonly T[]): T[][] {
  if (items.length <= 1) return [[...items]];
  return items.flatMap((item, index) =>
    permutations([...items.slice(0, index), ...items.slice(index + 1)]).map((rest) => [item, ...rest]),
  );
}

describe.each(Object.entries(LIVES))("a dispute's life (%s)", (_, life) => {
  const inOrder = new Books();
  life.forEach((step, index) => inOrder.read(step, index * 2, index * 2 + 1));

  test("ends alike in whatever order its readings, all begun at once, are written", () => {
    for (const order of permutations(life)) {
      const books = new Books();
      order.forEach((step, index) => books.read(step, 0, index + 1));
      expect(books.end).toEqual(inOrder.end);
    }
  });

  test("ends alike where each is written twice, in any order", () => {
    for (const order of permutations(life)) {
      const books = new Books();
      [...order, ...order.toReversed()].forEach((step, index) => books.read(step, 0, index + 1));
      expect(books.end).toEqual(inOrder.end);
    }
  });

  test("ends alike where every event finds the dispute at its end", () => {
    const last = life.at(-1) as DisputeReading;
    const books = new Books();
    const moved = life.map((_step, index) => books.read(last, index * 2, index * 2 + 1));
    expect(books.end).toEqual(inOrder.end);
    expect(moved).toEqual(life.map((_step, index) => (index === 0 ? "advanced" : "unchanged")));
  });

  test("tells its opening first, each movement once, and its end once and last", () => {
    for (const order of permutations(life)) {
      const books = new Books();
      order.forEach((step, index) => books.read(step, 0, index + 1));
      expect(books.events[0]).toBe("dispute.opened");
      const count = (type: string) => books.events.filter((event) => event === type).length;
      const last = life.at(-1) as DisputeReading;
      expect(count(`dispute.${last.status}`)).toBe(1);
      expect(count("dispute.opened")).toBe(1);
      expect(count("dispute.funds_withdrawn")).toBe(last.movements.filter((one) => one.amount < 0).length);
      expect(count("dispute.funds_reinstated")).toBe(last.movements.filter((one) => one.amount > 0).length);
    }
  });
});

describe("a dispute", () => {
  test("that is won leaves nothing withdrawn, and one that is lost leaves its loss", () => {
    const sum = (life: readonly DisputeReading[], account: string) => {
      const books = new Books();
      life.forEach((step, index) => books.read(step, index * 2, index * 2 + 1));
      return books.sum(account);
    };
    expect(sum(LIVES["won"] ?? [], "disputed")).toBe(0);
    expect(sum(LIVES["won"] ?? [], "dispute_losses")).toBe(0);
    expect(sum(LIVES["lost"] ?? [], "disputed")).toBe(0);
    expect(sum(LIVES["lost"] ?? [], "dispute_losses")).toBe(1_000);
    expect(sum(LIVES["lost"] ?? [], "provider_balance")).toBe(-2_500);
  });

  test("that is lost leaves no loss while its appeal is heard, nor once it is won, and one loss where it is lost again", () => {
    const sums = (...life: readonly DisputeReading[]) => {
      const books = new Books();
      life.forEach((step, index) => books.read(step, index * 2, index * 2 + 1));
      return ["disputed", "dispute_losses"].map((account) => books.sum(account));
    };
    const lost = reading("lost", [WITHDRAWN]);
    const appeal = reading("under_review", [WITHDRAWN]);
    const won = reading("won", [WITHDRAWN, REINSTATED]);
    expect(sums(lost)).toEqual([0, 1_000]);
    expect(sums(lost, appeal)).toEqual([1_000, 0]);
    expect(sums(lost, appeal, won)).toEqual([0, 0]);
    expect(sums(lost, won)).toEqual([0, 0]);
    expect(sums(lost, appeal, lost)).toEqual([0, 1_000]);
    expect(sums(lost, appeal, lost, appeal, won)).toEqual([0, 0]);
    expect(sums(lost, reading("lost", [WITHDRAWN, { ...REINSTATED, amount: 400 }]))).toEqual([0, 600]);
  });

  test("that was kept as lost before its loss was counted has it taken back once, when it is won", () => {
    const books = new Books();
    books.read(reading("lost", [WITHDRAWN]), 0, 1);
    books.disputes = books.disputes.map(({ loss: _loss, ...kept }) => kept);
    books.read(reading("won", [WITHDRAWN, REINSTATED]), 2, 3);
    expect([books.sum("disputed"), books.sum("dispute_losses")]).toEqual([0, 0]);
  });

  test("that is lost before its withdrawal shows posts the loss when it does", () => {
    const books = new Books();
    books.read(reading("lost"), 0, 1);
    expect(books.posted.size).toBe(0);
    books.read(reading("lost", [WITHDRAWN]), 2, 3);
    expect([...books.posted.keys()].some((name) => name.startsWith("dispute_lost:dp_1"))).toBe(true);
    expect(books.events).toEqual(["dispute.opened", "dispute.lost", "dispute.funds_withdrawn"]);
  });

  test("that is lost and taken up again under appeal goes back where the provider says so", () => {
    const books = new Books();
    books.read(reading("lost", [WITHDRAWN]), 0, 1);
    expect(books.read(reading("under_review", [WITHDRAWN]), 2, 3)).toBe("advanced");
    expect(books.read(reading("won", [WITHDRAWN, REINSTATED]), 4, 5)).toBe("advanced");
    expect(books.events).toEqual([
      "dispute.opened",
      "dispute.funds_withdrawn",
      "dispute.lost",
      "dispute.updated",
      "dispute.funds_reinstated",
      "dispute.won",
    ]);
  });

  test("does not go back on a reading that was asked for before the last one was written", () => {
    const books = new Books();
    books.read(reading("under_review", [WITHDRAWN]), 0, 10);
    expect(books.read(reading("open", [WITHDRAWN]), 9, 11)).toBe("unchanged");
    expect(books.disputes).toMatchObject([{ status: "under_review" }]);
  });

  test("keeps its status and takes the movement of an older reading that is the first to show it", () => {
    const books = new Books();
    books.read(reading("under_review"), 0, 10);
    expect(books.read(reading("open", [WITHDRAWN]), 9, 11)).toBe("advanced");
    expect(books.disputes).toMatchObject([{ status: "under_review", movements: [WITHDRAWN] }]);
    expect(books.events).toEqual(["dispute.opened", "dispute.funds_withdrawn"]);
  });

  test("with two ends of which neither is known to be the later is read again, and then believed", () => {
    const books = new Books();
    books.read(reading("lost", [WITHDRAWN]), 0, 10);
    const won = reading("won", [WITHDRAWN, REINSTATED]);
    expect(books.read(won, 10, 11)).toBe("read_again");
    expect(books.disputes).toMatchObject([{ status: "lost", movements: [WITHDRAWN] }]);
    expect(books.read(won, 12, 13)).toBe("advanced");
    expect(books.disputes).toMatchObject([{ status: "won" }]);
  });

  test("of another amount or reason is told as an update", () => {
    const books = new Books();
    books.read(reading("open"), 0, 1);
    books.read(reading("open", [], { amount: 700 }), 2, 3);
    books.read(reading("open", [], { amount: 700, reason: "duplicate" }), 4, 5);
    expect(books.events).toEqual(["dispute.opened", "dispute.updated", "dispute.updated"]);
    expect(books.end.shown).toMatchObject([{ amount: 700, reason: "duplicate" }]);
  });

  test("stands beside the payment's others, in the order they were heard of", () => {
    const books = new Books();
    books.read(reading("lost", [], { id: "dp_1" }), 0, 1);
    books.read(reading("open", [], { id: "dp_2", amount: 5 }), 2, 3);
    books.read(reading("won", [], { id: "dp_1" }), 4, 5);
    expect(books.end.shown.map(({ id, status }) => `${id} ${status}`)).toEqual(["dp_1 won", "dp_2 open"]);
  });

  test("keeps when it was heard of, and says when it was last read", () => {
    const books = new Books();
    books.read(reading("open"), 0, 1);
    books.read(reading("lost"), 2, 3);
    expect(books.disputes).toMatchObject([{ opened_at: at(1).toISOString(), read_at: at(3).toISOString() }]);
  });

  test("whose movement has a fee alone posts it and tells of no funds", () => {
    const books = new Books();
    books.read(reading("open", [{ transactionId: "txn_f", amount: 0, currency: "usd", fee: 1_500 }]), 0, 1);
    expect(books.events).toEqual(["dispute.opened"]);
    expect([...books.posted.values()]).toEqual([1_500]);
  });

  test("is shown without what only the next reading needs", () => {
    const books = new Books();
    books.read(reading("open", [WITHDRAWN]), 0, 1);
    expect(books.end.shown).toEqual([
      { id: "dp_1", status: "open", amount: 1_000, currency: "usd", reason: "fraudulent" },
    ]);
  });
});

describe("a refund", () => {
  const refused: Readonly<Record<DisputeStatus, boolean>> = {
    warning: false,
    open: true,
    under_review: true,
    won: false,
    lost: true,
    closed: false,
  };

  test.each(DISPUTE_STATUSES)(
    "beside a dispute that is %s is refused or not, as the money stands",
    (status) => {
      expect(hasOpenDispute([reading(status)])).toBe(refused[status]);
      expect(hasOpenDispute([reading("won"), reading(status)])).toBe(refused[status]);
    },
  );

  test("of a payment without disputes is not refused", () => {
    expect(hasOpenDispute([])).toBe(false);
  });
});
