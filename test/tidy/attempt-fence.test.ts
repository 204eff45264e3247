import { describe, expect, it } from "vitest";
import { type SqlUpdate, updatesOf } from "./sql-updates.js";

/** A claim takes the attempt from whoever held it: it raises the fence instead of naming the one it holds. */
function isClaim({ set }: SqlUpdate): boolean {
  return /\bfence\s*[=:]\s*[^,]*\bfence\b[^,]*\+\s*1\b/.test(set);
}

/** A wake-up only makes the next claim come sooner; it writes nothing about an outcome. */
function isWakeUp({ columns }: SqlUpdate): boolean {
  return columns.every((column) => ["due_at", "dueAt", "nudged"].includes(column));
}

describe("an attempt", () => {
  const updates = updatesOf("attempts");

  it("is written only under the fence that the writer holds, so that a late owner changes nothing", () => {
    expect(updates.length).toBeGreaterThan(0);
    const unfenced = updates.filter(
      (update) => !isClaim(update) && !isWakeUp(update) && !/fence/.test(update.where),
    );
    expect(unfenced).toEqual([]);
  });

  it("is claimed in one place, which raises the fence", () => {
    expect(updates.filter(isClaim).map(({ file }) => file)).toEqual([expect.stringMatching(/^src\/store\//)]);
  });

  it("is updated by the store alone", () => {
    expect(updates.filter(({ file }) => !file.startsWith("src/store/"))).toEqual([]);
  });
});
