import { describe, expect, it } from "vitest";
import { REVIEW_REASONS } from "../../src/domain/review-reason.js";
import { readText } from "./source-files.js";

const PAGE = "docs/payment-life.md";

/** The reasons of the table that begins with `| review |`, each with what it means and what to look at. */
function reasonsTold(): string[] {
  const [, table = ""] = readText(PAGE).split("| review | meaning | look at |\n");
  return [...table.matchAll(/^\| `([a-z_]+)` \| [^|]+ \| [^|]+ \|$/gm)].map(([, reason = ""]) => reason);
}

describe("the reasons of reviews", () => {
  it("are told to whoever meets one, and none is told that no review has", () => {
    expect(reasonsTold().sort()).toEqual([...REVIEW_REASONS].sort());
  });
});
