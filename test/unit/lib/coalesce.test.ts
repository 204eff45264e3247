import { expect, test, vi } from "vitest";
import { Coalescer } from "../../../src/lib/coalesce.js";

test("the first value goes out at once, what follows within the interval goes out together, each once", async () => {
  vi.useFakeTimers();
  try {
    const sent: (readonly string[])[] = [];
    const hints = new Coalescer<string>(20, (values) => Promise.resolve(void sent.push(values)), vi.fn());
    for (const value of ["a", "b", "c", "b"]) hints.add(value);
    expect(sent).toEqual([["a"]]);
    await vi.advanceTimersByTimeAsync(20);
    expect(sent).toEqual([["a"], ["b", "c"]]);
    await vi.advanceTimersByTimeAsync(40);
    hints.add("d");
    expect(sent).toEqual([["a"], ["b", "c"], ["d"]]);
    hints.stop();
  } finally {
    vi.useRealTimers();
  }
});

test("a hint that cannot be sent is reported and nothing else", async () => {
  const failed = vi.fn();
  const hints = new Coalescer<string>(20, () => Promise.reject(new Error("no database")), failed);
  hints.add("a");
  await vi.waitFor(() => expect(failed).toHaveBeenCalledOnce());
  hints.stop();
});
