import { expect, test } from "vitest";
import { MicroBatch } from "../../../src/lib/micro-batch.js";

interface Item {
  readonly name: string;
  readonly bad?: boolean;
}

/** Runs are held until `release` is called; `runs` shows what stood in each. */
function stage(mostItems = 10, mostInFlight = 1, mostWaiting = 100) {
  const runs: string[][] = [];
  const held: (() => void)[] = [];
  const batch = new MicroBatch<Item, string>({
    run: async (items) => {
      runs.push(items.map((item) => item.name));
      await new Promise<void>((resolve) => held.push(resolve));
      if (items.some((item) => item.bad === true)) throw new Error("bad item");
      return items.map((item) => `done ${item.name}`);
    },
    mostItems,
    mostInFlight,
    mostWaiting,
    refusal: () => new Error("too many"),
    namesOf: (item) => [item.name],
    runsAlone: (error) => (error as Error).message === "bad item",
  });
  const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
  const release = async () => {
    held.shift()?.();
    await turn();
    await turn();
  };
  return { batch, runs, release, turn };
}

/** A failed batch is not tried again item by item. */
const WHOLE_BATCHES = {
  mostItems: 10,
  mostInFlight: 1,
  mostWaiting: 10,
  refusal: () => new Error("too many"),
  namesOf: (item: Item) => [item.name],
  runsAlone: () => false,
};

test("an item alone goes out at once, and what waits meanwhile shares the next run", async () => {
  const { batch, runs, release, turn } = stage();
  const first = batch.add({ name: "a" });
  await turn();
  const others = [batch.add({ name: "b" }), batch.add({ name: "c" })];
  await turn();
  expect(runs).toEqual([["a"]]);
  await release();
  expect(await first).toBe("done a");
  expect(runs).toEqual([["a"], ["b", "c"]]);
  await release();
  expect(await Promise.all(others)).toEqual(["done b", "done c"]);
});

test("items of one name never stand in one run", async () => {
  const { batch, runs, release, turn } = stage();
  const all = [batch.add({ name: "a" }), batch.add({ name: "a" }), batch.add({ name: "b" })];
  await turn();
  await release();
  await release();
  await Promise.all(all);
  expect(runs).toEqual([["a", "b"], ["a"]]);
});

test("a run takes no more than its bound, and no more runs are under way than theirs", async () => {
  const { batch, runs, release, turn } = stage(2, 2);
  const all = ["a", "b", "c", "d", "e"].map((name) => batch.add({ name }));
  await turn();
  expect(runs).toEqual([
    ["a", "b"],
    ["c", "d"],
  ]);
  for (let left = 0; left < 3; left += 1) await release();
  expect(await Promise.all(all)).toHaveLength(5);
});

test("one bad item fails alone: the others are run again one by one", async () => {
  const { batch, runs, release, turn } = stage();
  const good = batch.add({ name: "a" });
  const bad = batch.add({ name: "b", bad: true });
  const refused = expect(bad).rejects.toThrow("bad item");
  const last = batch.add({ name: "c" });
  await turn();
  for (let left = 0; left < 4; left += 1) await release();
  expect(await good).toBe("done a");
  await refused;
  expect(await last).toBe("done c");
  expect(runs).toEqual([["a", "b", "c"], ["a"], ["b"], ["c"]]);
});

test("a failure that may have had an effect fails the whole run, and nothing is run again", async () => {
  let runs = 0;
  const batch = new MicroBatch<Item, string>({
    run: () => {
      runs += 1;
      return Promise.reject(new Error("connection lost"));
    },
    ...WHOLE_BATCHES,
  });
  const all = ["a", "b"].map((name) => batch.add({ name }));
  for (const one of all) await expect(one).rejects.toThrow("connection lost");
  expect(runs).toBe(1);
});

test("more than its bound does not wait: an item is refused at once, and the others are served", async () => {
  const { batch, release, turn } = stage(10, 1, 2);
  const first = batch.add({ name: "a" });
  await turn();
  const waiting = [batch.add({ name: "b" }), batch.add({ name: "c" })];
  await expect(batch.add({ name: "d" })).rejects.toThrow("too many");
  await release();
  await release();
  expect(await Promise.all([first, ...waiting])).toEqual(["done a", "done b", "done c"]);
});

test("a run that brings fewer results than it had items answers nobody", async () => {
  const batch = new MicroBatch<Item, string>({
    run: (items) => Promise.resolve(items.slice(1).map((item) => `done ${item.name}`)),
    ...WHOLE_BATCHES,
  });
  const all = ["a", "b"].map((name) => batch.add({ name }));
  for (const one of all) await expect(one).rejects.toThrow("2 items came back as 1 results");
});
