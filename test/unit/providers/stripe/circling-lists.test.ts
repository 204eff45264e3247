import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { MOST_PAGES } from "../../../../src/providers/stripe/list-pages.js";
import { ATTEMPT_ID, type Bench, intent, page, type Reply, startBench } from "./scripted-stripe.js";

/** Of a list in a circle, asked for at most so often as many times as it has pages. */
const MOST_ROUNDS = 4;
const WINDOW = { createdFrom: new Date(0), createdTo: new Date(10_000_000_000) };

let bench: Bench;
beforeEach(async () => {
  bench = await startBench();
});
afterEach(() => bench.close());

/** Pages of one object each: that of page n leads to page n + 1, that of the last to page `back`, or there is no more. */
function pages(count: number, back: number | null, entry: (id: string) => object): Reply {
  return (response, _socket, request) => {
    const after = new URL(request.path, "http://stripe").searchParams.get("starting_after");
    const last = after === null ? 0 : Number(after.split("_")[1]);
    const number = last === count ? (back ?? 1) : last + 1;
    const more = back !== null || number < count;
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ object: "list", data: [entry(`x_${number}`)], has_more: more }));
  };
}

const foreign = (id: string) => ({ ...intent({ id, metadata: null }), created: 1 });
const transaction = (id: string) => ({
  id,
  object: "balance_transaction",
  amount: 100,
  fee: 0,
  net: 100,
  currency: "usd",
  source: null,
  type: "charge",
  created: 1,
});

/** Follows the cursors until there is no more, or no answer. */
async function follow(
  ask: (cursor: string | null) => Promise<{ type: string; next?: string | null }>,
): Promise<{ type: string; next?: string | null }> {
  let cursor: string | null = null;
  for (let asked = 0; asked < MOST_PAGES; asked += 1) {
    const answer = await ask(cursor);
    if (answer.next === undefined || answer.next === null) return answer;
    cursor = answer.next;
  }
  throw new Error("the list is asked for without end");
}

const LISTS = [
  "listCharges",
  "listRefunds",
  "listDisputes",
  "listTransactions",
  "listUndeliveredEvents",
  "listPayoutEvents",
] as const;
const READERS = [
  ...LISTS.map((list) => ({
    reader: list,
    entry: foreign,
    read: () => follow((cursor) => bench.provider[list]({ ...WINDOW, cursor })),
  })),
  {
    reader: "getPayout",
    entry: transaction,
    read: () => follow((cursor) => bench.provider.getPayout("po_1", cursor)),
  },
];
/** How many pages there are, and the one that the last leads back to. */
const CIRCLES = [
  [2, 1],
  [3, 1],
  [3, 2],
  [7, 1],
  [9, 5],
  [20, 20],
] as const;

describe.each(READERS)("$reader", ({ entry, read }) => {
  it.each(CIRCLES)("has no answer where page %d leads back to page %d", async (count, back) => {
    bench.stripe.script(pages(count, back, entry));
    expect(await read()).toMatchObject({ type: "unanswered", reason: "unreadable" });
    expect(bench.stripe.requests.length).toBeLessThanOrEqual(MOST_ROUNDS * count);
  });

  it("reads a list of any length that ends", async () => {
    bench.stripe.script(pages(70, null, entry));
    expect(await read()).not.toMatchObject({ type: "unanswered" });
    const ids = bench.stripe.requests.map(({ path }) =>
      new URL(path, "http://stripe").searchParams.get("starting_after"),
    );
    expect(ids).toEqual([null, ...Array.from({ length: 69 }, (_, at) => `x_${at + 1}`)]);
  });
});

describe.each([
  { reader: "findCharge", find: () => bench.provider.findCharge({ attemptId: ATTEMPT_ID, ...WINDOW }) },
  {
    reader: "findRefund",
    find: () => bench.provider.findRefund({ attemptId: ATTEMPT_ID, chargeId: "pi_1" }),
  },
])("$reader", ({ find }) => {
  it.each(CIRCLES)("has no answer as soon as page %d has led back to page %d", async (count, back) => {
    bench.stripe.script(pages(count, back, foreign));
    expect(await find()).toMatchObject({ type: "unanswered", reason: "unreadable" });
    expect(bench.stripe.requests).toHaveLength(count + 1);
    expect(count).toBeLessThan(MOST_PAGES);
  });

  it("has none from a list that ends with an object which it has shown before", async () => {
    bench.stripe.script(page([foreign("x_1")], true), page([foreign("x_2")], true), page([foreign("x_1")]));
    expect(await find()).toMatchObject({ type: "unanswered", reason: "unreadable" });
  });
});
