import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { run } from "../support/processes.js";

const ROOT = join(import.meta.dirname, "../..");
const SIMULATE = "scripts/simulate.ts";
const CHAOS = "scripts/chaos.ts";
const EXPLORE = "test/explore/main.ts";

function program(file: string, ...words: readonly string[]) {
  return run(words, { program: [process.execPath, "--import", "tsx", join(ROOT, file)], cwd: ROOT });
}

describe("the programs for people who look for faults", () => {
  it.each([
    [SIMULATE, ["--seeds", "0"], /^--seeds: must be a whole number/],
    [CHAOS, [], /^--minutes is needed/],
    [EXPLORE, ["--nonsense"], /^Unknown option '--nonsense'\n/],
    [EXPLORE, ["--only", "zzzz"], /^--only: no scenario has "zzzz" in its name/],
  ])("%s %j says in a line what is wrong, then its usage, and exits 2", async (file, words, said) => {
    const { exit, stdout, stderr } = await program(file, ...words);
    expect({ code: exit.code, stdout }, stderr).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(said);
    expect(stderr).toContain("\n\nnpm run ");
    expect(stderr).not.toContain("    at ");
  });

  it("--help prints the usage and exits 0", async () => {
    const { exit, stdout, stderr } = await program(CHAOS, "--help");
    expect({ code: exit.code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/^npm run /);
  });
});
