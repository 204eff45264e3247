import { describe, expect, it } from "vitest";
import { filesUnder, readText } from "./source-files.js";
import { updatesOf } from "./sql-updates.js";

describe("ledger_balances", () => {
  const sources = [...filesUnder("src"), ...filesUnder("workers")].filter((path) => path.endsWith(".ts"));

  it("is named nowhere but in its schema, in the ledger's store and in the doctor, which only reads", () => {
    const naming = sources.filter((path) => /\bledger_balances\b|\bledgerBalances\b/.test(readText(path)));
    expect(naming.toSorted()).toEqual([
      "src/store/doctor-open.ts",
      "src/store/ledger.ts",
      "src/store/schema-ledger.ts",
    ]);
  });

  it("is written by the roll-up alone, never by what a payment commits", () => {
    const writers = updatesOf("ledger_balances").map(({ file, owner }) => `${file} ${owner}`);
    expect(writers).toEqual(["src/store/ledger.ts countEntries"]);
    const inserts = readText("src/store/ledger.ts").match(/insert\s+into\s+ledger_balances\b/gi) ?? [];
    expect(inserts).toHaveLength(writers.length);
  });
});
