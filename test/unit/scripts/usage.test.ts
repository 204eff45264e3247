import { afterEach, describe, expect, it, vi } from "vitest";
import { optionsFrom, runWith, wholeNumber } from "../../../scripts/usage.js";

const USAGE = "npm run something -- [--seeds N]";
const OPTIONS = { seeds: { type: "string" } } as const;

afterEach(() => vi.restoreAllMocks());

/** What a script that only reads its options prints. */
async function ran(...words: readonly string[]) {
  const written = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    vi.spyOn(process[name], "write").mockImplementation((text) => {
      written[name] += String(text);
      return true;
    });
  }
  const code = await runWith(USAGE, words, () => {
    const { seeds = "1" } = optionsFrom(words, OPTIONS);
    wholeNumber("seeds", seeds);
    return Promise.resolve(0);
  });
  vi.restoreAllMocks();
  return { code, ...written };
}

describe("what is typed behind the name of a script", () => {
  it("is read", async () => {
    expect(await ran("--seeds", "3")).toEqual({ code: 0, stdout: "", stderr: "" });
  });

  it.each([
    [["--nonsense"], "Unknown option '--nonsense'"],
    [["extra"], "Unexpected argument 'extra'"],
    [["--seeds"], "Option '--seeds <value>' argument missing"],
    [["--seeds", "many"], '--seeds: must be a whole number from 1 on, and is "many"'],
    [["--seeds", "0"], '--seeds: must be a whole number from 1 on, and is "0"'],
    [["--seeds", "1.5"], '--seeds: must be a whole number from 1 on, and is "1.5"'],
  ])("is wrong with %j: one line that says why, the usage, and 2", async (words, why) => {
    expect(await ran(...words)).toEqual({ code: 2, stdout: "", stderr: `${why}\n\n${USAGE}\n` });
  });

  it("--help prints the usage, and 0", async () => {
    expect(await ran("--help")).toEqual({ code: 0, stdout: `${USAGE}\n`, stderr: "" });
  });

  it("does not take a fault of the script for a wrong word", async () => {
    const fault = new Error("broken");
    await expect(runWith(USAGE, [], () => Promise.reject(fault))).rejects.toBe(fault);
  });
});
