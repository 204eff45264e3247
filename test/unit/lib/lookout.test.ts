import { expect, test } from "vitest";
import { type Clock, systemClock } from "../../../src/lib/clock.js";
import { startLookout } from "../../../src/lib/lookout.js";

/** A clock that stands until the nap is ended, and is then at its end. */
function handClock() {
  let nowMs = 0;
  let wake: () => void = () => undefined;
  let napMs = 0;
  const clock: Clock = {
    ...systemClock,
    monotonicMs: () => nowMs,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        napMs = ms;
        wake = resolve;
        if (signal?.aborted === true) resolve();
        signal?.addEventListener("abort", () => resolve());
      }),
  };
  const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
  return {
    clock,
    napMs: () => napMs,
    /** Time that passes while nobody sleeps. */
    pass: (ms: number) => {
      nowMs += ms;
    },
    /** Ends the nap, `earlyMs` before its time, and lets what follows run. */
    endNap: async (earlyMs = 0) => {
      nowMs += napMs - earlyMs;
      wake();
      await turn();
    },
  };
}

type Name = "quick" | "even" | "slow";

function stage(intervalsMs: Readonly<Partial<Record<Name, number>>>) {
  const hand = handClock();
  const looks: string[] = [];
  const found: Name[] = [];
  const errors: unknown[] = [];
  const answers: ((names: readonly Name[]) => Promise<readonly Name[]>)[] = [];
  const lookout = startLookout<Name>({
    intervalsMs: new Map(Object.entries(intervalsMs) as [Name, number][]),
    clock: hand.clock,
    look: (names) => {
      looks.push(`${hand.clock.monotonicMs()} ${names.join(" ")}`);
      return answers.shift()?.(names) ?? Promise.resolve([]);
    },
    onFound: (name) => found.push(name),
    onError: (error) => errors.push(error),
  });
  return { hand, lookout, looks, found, errors, answers };
}

test("each is asked about once an interval, and those whose time comes together by one question", async () => {
  const { hand, lookout, looks } = stage({ quick: 250, even: 250, slow: 1_000 });
  for (let naps = 0; naps < 5; naps += 1) await hand.endNap();
  expect(looks).toEqual([
    "250 quick even",
    "500 quick even",
    "750 quick even",
    "1000 quick even slow",
    "1250 quick even",
  ]);
  await lookout.stop();
});

test("nobody waits longer than its interval, whatever the intervals of the others", async () => {
  const { hand, lookout, looks } = stage({ quick: 100, slow: 130 });
  for (let naps = 0; naps < 4; naps += 1) await hand.endNap();
  expect(looks).toEqual(["100 quick slow", "200 quick slow", "300 quick slow", "400 quick slow"]);
  await lookout.stop();
  const apart = stage({ quick: 100, slow: 170 });
  for (let naps = 0; naps < 4; naps += 1) await apart.hand.endNap();
  expect(apart.looks).toEqual(["100 quick", "170 quick slow", "270 quick", "340 quick slow"]);
  await apart.lookout.stop();
});

test("who has an interval longer than any test is not asked about", async () => {
  const { hand, lookout, looks } = stage({ quick: 20, slow: 600_000 });
  for (let naps = 0; naps < 3; naps += 1) await hand.endNap();
  expect(looks).toEqual(["20 quick", "40 quick", "60 quick"]);
  await lookout.stop();
});

test("those that there is something for are told, and no others", async () => {
  const { hand, lookout, found, answers } = stage({ quick: 250, even: 250 });
  answers.push(() => Promise.resolve(["even"]));
  await hand.endNap();
  await hand.endNap();
  expect(found).toEqual(["even"]);
  await lookout.stop();
});

test("a look that fails is reported and followed by the interval, so a database that is away is not stormed", async () => {
  const { hand, lookout, looks, errors, found, answers } = stage({ quick: 250 });
  answers.push(
    () => Promise.reject(new Error("no database")),
    (names) => Promise.resolve(names),
  );
  await hand.endNap();
  expect(errors).toHaveLength(1);
  expect(hand.napMs()).toBe(250);
  await hand.endNap();
  expect(looks).toHaveLength(2);
  expect(found).toEqual(["quick"]);
  await lookout.stop();
});

test("the interval is counted from the look's answer, and a nap that ends too early asks for nothing", async () => {
  const { hand, lookout, looks, answers } = stage({ quick: 250 });
  answers.push(() => {
    hand.pass(40);
    return Promise.resolve([]);
  });
  await hand.endNap();
  expect(hand.napMs()).toBe(250);
  await hand.endNap(200);
  expect(hand.napMs()).toBe(200);
  await hand.endNap();
  expect(looks).toEqual(["250 quick", "540 quick"]);
  await lookout.stop();
});

test("after stop there is no look, and stop waits for the one under way", async () => {
  const { hand, lookout, looks, answers } = stage({ quick: 250 });
  let answer: () => void = () => undefined;
  answers.push(
    () =>
      new Promise((resolve) => {
        answer = () => resolve([]);
      }),
  );
  await hand.endNap();
  let stopped = false;
  const stopping = lookout.stop().then(() => {
    stopped = true;
  });
  await new Promise<void>((resolve) => setImmediate(resolve));
  expect(stopped).toBe(false);
  answer();
  await stopping;
  await hand.endNap();
  expect(looks).toHaveLength(1);
});

test("where nobody is to be asked about, there is nothing to wait for", async () => {
  const { lookout, looks } = stage({});
  await lookout.stop();
  expect(looks).toEqual([]);
});
