import { describe, expect, it } from "vitest";
import type { Call } from "../../src/sandbox/call.js";
import type { StripeFailure } from "../../src/sandbox/errors.js";
import { listed, pageOf } from "../../src/sandbox/object-lists.js";
import { ObjectTable, type Ordered } from "../../src/sandbox/object-table.js";

interface Thing {
  readonly id: string;
  readonly created: number;
}

const MANY = 100_000;
/** Three a second. */
const THINGS: readonly Thing[] = Array.from({ length: MANY }, (_, at) => ({
  id: `th_${at}`,
  created: 1_000 + Math.floor(at / 3),
}));

function tableOf(things: readonly Thing[]): ObjectTable<Thing> {
  const table = new ObjectTable<Thing>();
  for (const thing of things) table.save(thing);
  return table;
}

function page(list: Ordered<Thing>, params: Call["params"], matches?: (thing: Thing) => boolean) {
  const options = { kind: "thing", url: "/v1/things", ...(matches === undefined ? {} : { matches }) };
  const { data, has_more: more } = pageOf({ params } as Call, list, options);
  return { ids: data.map(({ id }) => id), more };
}

const idsOf = (...places: readonly number[]) => places.map((place) => `th_${place}`);

describe("a page of a long list", () => {
  const table = tableOf(THINGS);

  it.each<[string, Call["params"]]>([
    ["at its beginning", { limit: "100" }],
    ["in its middle", { limit: "100", starting_after: "th_50000" }],
    ["at its end", { limit: "100", starting_after: "th_99" }],
    ["of a window far back", { limit: "100", created: { gte: "1010", lte: "1099" } }],
    ["before a cursor", { limit: "100", ending_before: "th_50000" }],
  ])("looks at no more objects than it shows, and at one behind them: %s", (_where, params) => {
    let looked = 0;
    const counted: Ordered<Thing> = {
      size: table.size,
      at: (place) => {
        looked += 1;
        return table.at(place);
      },
      placeOf: (id) => table.placeOf(id),
      placesIn: (window) => table.placesIn(window),
    };
    expect(page(counted, params).ids.length).toBeGreaterThan(0);
    expect(looked).toBeLessThanOrEqual(101);
  });

  it("shows each object once, newest first, over all pages of a window", () => {
    const created = { gte: "1100", lt: "1200" };
    const seen: string[] = [];
    for (let after: string | undefined; ; after = seen.at(-1)) {
      const params = { limit: "70", created, ...(after === undefined ? {} : { starting_after: after }) };
      const { ids, more } = page(table, params);
      seen.push(...ids);
      if (!more) break;
    }
    expect(seen).toEqual(idsOf(...Array.from({ length: 300 }, (_, at) => 599 - at)));
  });
});

describe.each<[string, (things: readonly Thing[]) => Ordered<Thing>]>([
  ["a table", tableOf],
  ["a few objects", listed],
])("a page of %s", (_name, listOf) => {
  const list = listOf(THINGS.slice(0, 10));

  it.each<[string, Call["params"], readonly number[], boolean]>([
    ["the newest", { limit: "3" }, [9, 8, 7], true],
    ["all of it", { limit: "10" }, [9, 8, 7, 6, 5, 4, 3, 2, 1, 0], false],
    ["after a cursor", { limit: "3", starting_after: "th_4" }, [3, 2, 1], true],
    ["after the last", { limit: "3", starting_after: "th_0" }, [], false],
    ["before a cursor the nearest", { limit: "2", ending_before: "th_4" }, [6, 5], true],
    ["before the first", { limit: "2", ending_before: "th_9" }, [], false],
    ["a window with both ends", { created: { gte: "1001", lte: "1002" } }, [8, 7, 6, 5, 4, 3], false],
    ["one second", { created: "1001" }, [5, 4, 3], false],
    [
      "older than a cursor from within a window",
      { created: { lt: "1002" }, starting_after: "th_8" },
      [5, 4, 3, 2, 1, 0],
      false,
    ],
    [
      "nothing behind a cursor older than the window",
      { created: { gt: "1001" }, starting_after: "th_2" },
      [],
      false,
    ],
    [
      "newer than a cursor within a window",
      { created: { gte: "1002" }, ending_before: "th_1" },
      [9, 8, 7, 6],
      false,
    ],
  ])("shows %s", (_what, params, places, more) => {
    expect(page(list, params)).toEqual({ ids: idsOf(...places), more });
  });

  it("shows only what matches, and whether more of that is left", () => {
    const isEven = ({ id }: Thing) => Number(id.slice(3)) % 2 === 0;
    expect(page(list, { limit: "2" }, isEven)).toEqual({ ids: idsOf(8, 6), more: true });
    expect(page(list, { limit: "2", starting_after: "th_4" }, isEven)).toEqual({
      ids: idsOf(2, 0),
      more: false,
    });
  });

  it("refuses a cursor that names nothing", () => {
    const refusal = (): StripeFailure | null => {
      try {
        page(list, { starting_after: "th_none" });
        return null;
      } catch (error) {
        return error as StripeFailure;
      }
    };
    expect(refusal()).toMatchObject({ status: 400, error: { param: "starting_after" } });
  });
});

it("a list whose clock was set back shows what a window names, in the order of its making", () => {
  const list = listed([
    { id: "th_0", created: 50 },
    { id: "th_1", created: 10 },
    { id: "th_2", created: 60 },
  ]);
  expect(page(list, { created: { gte: "50" } })).toEqual({ ids: idsOf(2, 0), more: false });
});
