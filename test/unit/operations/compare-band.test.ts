import { describe, expect, it } from "vitest";
import type { Difference } from "../../../src/domain/finding.js";
import { firstIdAt } from "../../../src/lib/ids.js";
import { behind, lookForMissing, type OwnRows } from "../../../src/operations/compare-band.js";
import { type HeldRun, type Position, RecentObjects } from "../../../src/operations/reconcile-run.js";
import type { IdBand } from "../../../src/store/counterparts.js";

const AT = (second: number) => new Date(Date.UTC(2026, 10, 29, 12, 0, second));
const WINDOW = { windowFrom: AT(0), windowTo: AT(50) };
const FIRST: Position = {
  after: null,
  isCompared: false,
  before: null,
  failures: 0,
  skipped: [],
  leftOut: [],
  since: null,
  notBefore: null,
};

interface Row {
  readonly id: string;
  readonly objectId: string | null;
}

/** Rows newest first, one a second, each with an object of its own. */
function rowsOf(seconds: readonly number[]): Row[] {
  return seconds
    .map((second) => ({ id: firstIdAt("pay", AT(second)), objectId: `pi_${second}` }))
    .toSorted((one, other) => (one.id < other.id ? 1 : -1));
}

/** `there`: what the provider has, whether its pages show it or not. */
function stage(rows: readonly Row[], there: readonly string[], shown: readonly string[] = []) {
  const asked: string[] = [];
  const bands: IdBand[] = [];
  const recent = new RecentObjects();
  recent.add(shown);
  const held = {
    run: WINDOW,
    recent,
    askAbout: (_id: string, _name: string, question: () => Promise<unknown>) => question(),
  } as unknown as HeldRun;
  const own: OwnRows<Row> = {
    prefix: "pay",
    question: "get",
    read: (band) => {
      bands.push(band);
      const within = rows.filter(({ id }) => id >= band.from && id < band.before);
      return Promise.resolve({ rows: within.slice(0, band.limit), isAll: within.length <= band.limit });
    },
    rowId: ({ id }) => id,
    objectId: ({ objectId }) => objectId,
    ask: (objectId) => {
      asked.push(objectId);
      const type = there.includes(objectId) ? "found" : "missing";
      return Promise.resolve({ type, evidence: { httpStatus: 200, code: null, requestId: null } });
    },
    missing: (_row, objectId) => ({ objectId }) as unknown as Difference,
  };
  return { held, own, asked, bands };
}

const missingIds = (found: readonly Difference[]) => found.map(({ objectId }) => objectId);

describe("the rows of a page's time", () => {
  it("begin after the second of the page's last object, since that may go on on the next page", async () => {
    const { held, own, bands } = stage([], []);
    const band = await lookForMissing(held, FIRST, { oldest: AT(20), next: "pi_20" }, own);
    expect(bands).toMatchObject([{ from: firstIdAt("pay", AT(21)), before: firstIdAt("pay", AT(50)) }]);
    expect(behind(FIRST, { oldest: AT(20), next: "pi_20" }, band)).toMatchObject({
      after: "pi_20",
      before: firstIdAt("pay", AT(21)),
      isCompared: false,
    });
  });

  it("of the last page begin with the window, and nothing is left behind it", async () => {
    const { held, own, bands } = stage([], []);
    const page = { oldest: AT(20), next: null };
    const band = await lookForMissing(held, FIRST, page, own);
    expect(bands[0]?.from).toBe(firstIdAt("pay", AT(0)));
    expect(behind(FIRST, page, band)).toBeNull();
  });

  it("are all looked at once over the pages, none twice", async () => {
    const rows = rowsOf(Array.from({ length: 50 }, (_, second) => second));
    const { held, own, asked } = stage(rows, []);
    const pages = [
      { oldest: AT(40), next: "pi_40" },
      { oldest: AT(40), next: "pi_40b" },
      { oldest: AT(11), next: "pi_11" },
      { oldest: null, next: null },
    ];
    let position: Position | null = FIRST;
    for (const page of pages) {
      for (let going = true; going && position !== null; ) {
        const band = await lookForMissing(held, position, page, own);
        going = band.left !== null;
        position = behind(position, page, band);
      }
    }
    expect(position).toBeNull();
    expect(asked).toHaveLength(50);
    expect(new Set(asked).size).toBe(50);
  });
});

describe("a row whose object the pages did not show", () => {
  it("is missing only where the provider says so when it is asked", async () => {
    const { held, own, asked } = stage(rowsOf([1, 2, 3]), ["pi_1"], ["pi_3"]);
    const band = await lookForMissing(held, FIRST, { oldest: null, next: null }, own);
    expect(asked).toEqual(["pi_2", "pi_1"]);
    expect(missingIds(band.missing)).toEqual(["pi_2"]);
    expect(band.left).toBeNull();
  });

  it("is one of at most forty that a step asks about; the rest are the next step's, beside the same page", async () => {
    const rows = rowsOf(Array.from({ length: 50 }, (_, second) => second));
    const { held, own, asked } = stage(rows, []);
    const page = { oldest: null, next: null };
    const first = await lookForMissing(held, FIRST, page, own);
    expect(asked).toHaveLength(40);
    const position = behind(FIRST, page, first);
    expect(position).toMatchObject({ after: null, isCompared: true });
    const second = await lookForMissing(held, position ?? FIRST, page, own);
    expect(asked).toHaveLength(50);
    expect(behind(position ?? FIRST, page, second)).toBeNull();
    expect(missingIds([...first.missing, ...second.missing])).toHaveLength(50);
  });

  it("is found behind any number of rows that have no object at all", async () => {
    const bare = rowsOf(Array.from({ length: 49 }, (_, second) => second + 1));
    const rows = [...bare.map((row) => ({ ...row, objectId: null })), ...rowsOf([0])];
    const { held, own, asked } = stage(rows, []);
    const band = await lookForMissing(held, FIRST, { oldest: null, next: null }, own);
    expect([asked, missingIds(band.missing)]).toEqual([["pi_0"], ["pi_0"]]);
  });

  it("is not passed over where more rows than a step reads are of one page's time", async () => {
    const rows = Array.from({ length: 1_200 }, (_, at) => ({
      id: firstIdAt("pay", new Date(AT(0).getTime() + at)),
      objectId: `pi_${at}`,
    })).toReversed();
    const shown = rows.map((_, at) => `pi_${1_199 - at}`).filter((id) => id !== "pi_0" && id !== "pi_700");
    const { held, own } = stage(rows, [], shown);
    const missing: string[] = [];
    let position: Position | null = FIRST;
    while (position !== null) {
      const page = { oldest: null, next: null };
      const band: Awaited<ReturnType<typeof lookForMissing>> = await lookForMissing(
        held,
        position,
        page,
        own,
      );
      missing.push(...missingIds(band.missing));
      position = behind(position, page, band);
    }
    expect(missing).toEqual(["pi_700", "pi_0"]);
  });
});
