import { expect, test } from "vitest";
import { type Clock, systemClock } from "../../../src/lib/clock.js";
import { startPollLoop } from "../../../src/lib/poll-loop.js";

/** A clock whose naps end when the test says so. */
function handClock() {
  const naps: { ms: number; end: () => void }[] = [];
  const clock: Clock = {
    ...systemClock,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        naps.push({ ms, end: resolve });
        signal?.addEventListener("abort", () => resolve());
      }),
  };
  return { clock, naps };
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

function stage(answers: (boolean | Error)[]) {
  const { clock, naps } = handClock();
  const errors: unknown[] = [];
  let rounds = 0;
  const loop = startPollLoop({
    intervalMs: 1_000,
    clock,
    run: () => {
      const answer = answers[rounds] ?? false;
      rounds += 1;
      return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
    },
    onError: (error) => errors.push(error),
  });
  return { loop, naps, errors, rounds: () => rounds };
}

test("rounds follow at once while there is more, then after the interval", async () => {
  const { loop, naps, rounds } = stage([true, true, false]);
  await turn();
  expect(rounds()).toBe(3);
  expect(naps.map((nap) => nap.ms)).toEqual([1_000]);
  naps[0]?.end();
  await turn();
  expect(rounds()).toBe(4);
  await loop.stop();
});

test("a wake during a nap starts a round at once", async () => {
  const { loop, rounds } = stage([false, false]);
  await turn();
  expect(rounds()).toBe(1);
  loop.wake();
  await turn();
  expect(rounds()).toBe(2);
  await loop.stop();
});

test("a wake during a round is not lost: one more round follows", async () => {
  const { clock } = handClock();
  let rounds = 0;
  let end: () => void = () => undefined;
  const loop = startPollLoop({
    intervalMs: 1_000,
    clock,
    run: async () => {
      rounds += 1;
      await new Promise<void>((resolve) => {
        end = resolve;
      });
      return false;
    },
    onError: () => undefined,
  });
  await turn();
  loop.wake();
  end();
  await turn();
  expect(rounds).toBe(2);
  end();
  await loop.stop();
});

test("a round that fails is reported and followed by the interval, so a failing loop does not spin", async () => {
  const { loop, naps, errors, rounds } = stage([new Error("no database")]);
  await turn();
  expect(errors).toHaveLength(1);
  expect(rounds()).toBe(1);
  expect(naps).toHaveLength(1);
  await loop.stop();
});

test("after stop no round begins, and stop waits for the one under way", async () => {
  const { loop, rounds } = stage([false]);
  await turn();
  await loop.stop();
  loop.wake();
  await turn();
  expect(rounds()).toBe(1);
});

test("without an interval a round comes only when the loop is woken, also after one that failed", async () => {
  const { clock, naps } = handClock();
  let rounds = 0;
  const loop = startPollLoop({
    intervalMs: null,
    clock,
    run: () => {
      rounds += 1;
      return rounds === 2 ? Promise.reject(new Error("no database")) : Promise.resolve(false);
    },
    onError: () => undefined,
  });
  await turn();
  expect(rounds).toBe(1);
  loop.wake();
  await turn();
  expect(rounds).toBe(2);
  loop.wake();
  await turn();
  expect(rounds).toBe(3);
  expect(naps).toEqual([]);
  await loop.stop();
});
