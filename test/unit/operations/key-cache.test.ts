import { expect, test } from "vitest";
import { systemClock } from "../../../src/lib/clock.js";
import { KeyCache } from "../../../src/operations/key-cache.js";
import type { ApiKey } from "../../../src/store/tenants.js";

const KEY: ApiKey = {
  tenantId: "ten_1",
  id: "key_1",
  secretHash: "hash",
  scopes: [],
  livemode: false,
  createdAt: new Date(0),
  revokedAt: null,
};

function stage() {
  let nowMs = 0;
  let reads = 0;
  let stored: ApiKey | null = KEY;
  const cache = new KeyCache(
    () => {
      reads += 1;
      return Promise.resolve(stored);
    },
    { ...systemClock, monotonicMs: () => nowMs },
  );
  return {
    cache,
    reads: () => reads,
    pass: (ms: number) => {
      nowMs += ms;
    },
    store: (key: ApiKey | null) => {
      stored = key;
    },
  };
}

test("a key is believed for a second, and looked up again after it", async () => {
  const { cache, reads, pass, store } = stage();
  await cache.read("ten_1", "key_1");
  store({ ...KEY, revokedAt: new Date(1) });
  pass(999);
  expect(await cache.read("ten_1", "key_1")).toEqual(KEY);
  pass(1);
  expect(await cache.read("ten_1", "key_1")).toMatchObject({ revokedAt: new Date(1) });
  expect(reads()).toBe(2);
});

test("that there is no such key is never believed: a new key works at once", async () => {
  const { cache, store } = stage();
  store(null);
  expect(await cache.read("ten_1", "key_1")).toBeNull();
  store(KEY);
  expect(await cache.read("ten_1", "key_1")).toEqual(KEY);
});

test("requests that come together share one look-up, and a look-up that fails is not kept", async () => {
  let fails = true;
  let reads = 0;
  const cache = new KeyCache(() => {
    reads += 1;
    return fails ? Promise.reject(new Error("no database")) : Promise.resolve(KEY);
  }, systemClock);
  const together = [cache.read("ten_1", "key_1"), cache.read("ten_1", "key_1")];
  for (const one of together) await expect(one).rejects.toThrow("no database");
  expect(reads).toBe(1);
  fails = false;
  expect(await cache.read("ten_1", "key_1")).toEqual(KEY);
});
