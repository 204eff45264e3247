import { describe, expect, it } from "vitest";
import { filesUnder, holdsTypesAlone, readText, stem } from "./source-files.js";

const tests = filesUnder("test").filter(
  (path) => path.endsWith(".test.ts") && !path.startsWith("test/tidy/"),
);

function isNamedByATest(file: string): boolean {
  const name = new RegExp(`(?<![a-z-])${stem(file)}(?![a-z-])`);
  return tests.some((path) => name.test(path) || name.test(readText(path)));
}

describe("every file that does something", () => {
  const operations = filesUnder("src/operations").filter((path) => !holdsTypesAlone(path));
  const workers = filesUnder("workers").filter((path) => stem(path) !== "index" && !holdsTypesAlone(path));

  it("in src/operations is named by a test", () => {
    expect(operations.length).toBeGreaterThan(0);
    expect(operations.filter((path) => !isNamedByATest(path))).toEqual([]);
  });

  it("in workers is named by a test", () => {
    expect(workers.length).toBeGreaterThan(0);
    expect(workers.filter((path) => !isNamedByATest(path))).toEqual([]);
  });
});
