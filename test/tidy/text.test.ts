import { basename } from "node:path";
import { describe, expect, it } from "vitest";
import { filesUnder, readText } from "./source-files.js";

const SELF = "test/tidy/text.test.ts";
const TEXT =
  /\.(?:ts|mjs|cjs|json|md|sql|sh|yml|yaml)$|(?:^|\/)(?:Dockerfile|\.dockerignore|\.gitignore|run)$/;
const KEBAB_CASE = /^[a-z0-9]+(?:-[a-z0-9]+)*(?:\.(?:test|config|d))?\.[a-z]+$/;

const everyText = filesUnder(".").filter((path) => TEXT.test(path) && path !== SELF);

/** `path:line: text` of each line that matches. */
function linesWith(pattern: RegExp, paths: readonly string[]): string[] {
  return paths.flatMap((path) =>
    readText(path)
      .split("\n")
      .flatMap((line, index) => (pattern.test(line) ? [`${path}:${index + 1}: ${line.trim()}`] : [])),
  );
}

describe("the text of the project", () => {
  it("leaves nothing to be done later", () => {
    expect(linesWith(/\b(?:TODO|FIXME|XXX|HACK)\b/, everyText)).toEqual([]);
  });

  it("names no folder of the machine that it was written on", () => {
    expect(linesWith(/(?<![\w.-])\/(?:work|home|root|Users|tmp)\/[\w.-]/, everyText)).toEqual([]);
  });

  it("names no package registry, so that an install asks the one its user chose", () => {
    const host = /https?:\/\/[^\s"'/]*(?:registry|npmjs|verdaccio|artifactory|nexus)/i;
    expect(linesWith(host, everyText)).toEqual([]);
    expect(linesWith(/"resolved"\s*:\s*"/, ["package-lock.json"])).toEqual([]);
  });

  it("has kebab-case file names", () => {
    const named = ["src", "workers", "test", "bench", "scripts", "docs"].flatMap(filesUnder);
    const ours = named.filter((path) => !path.startsWith("docs/errors/") && basename(path) !== "README.md");
    expect(ours.length).toBeGreaterThan(0);
    expect(ours.filter((path) => !KEBAB_CASE.test(basename(path)))).toEqual([]);
  });
});

describe("the tests", () => {
  const tests = filesUnder("test").filter((path) => path.endsWith(".ts") && path !== SELF);

  it("are all run: none is switched off or run alone", () => {
    expect(linesWith(/\b(?:it|test|describe)(?:\.\w+)*\.(?:only|skip|todo|fails)\b(?!If)/, tests)).toEqual(
      [],
    );
  });

  it("do not wait for a time to pass where they can wait for an event", () => {
    const files = tests.filter((path) => path.endsWith(".test.ts"));
    expect(linesWith(/await new Promise\(\(?\w*\)? => setTimeout\(\w+, \d/, files)).toEqual([]);
  });

  it.each(["unit", "sandbox", "integration", "contract", "race", "e2e", "embedded-postgres"])(
    "of the folder %s are there",
    (folder) => {
      expect(filesUnder(`test/${folder}`).some((path) => path.endsWith(".test.ts"))).toBe(true);
    },
  );

  it("are all in a folder that vitest runs", () => {
    const run =
      /^test\/(?:unit|explore|sandbox|tidy|embedded-postgres|integration|contract|race|simulation|e2e)\//;
    const files = filesUnder("test").filter((path) => path.endsWith(".test.ts"));
    expect(files.filter((path) => !run.test(path))).toEqual([]);
  });
});
