import { describe, expect, it } from "vitest";
import { pageOf, readCursor } from "../../../src/operations/paging.js";

const idOf = (at: number) => ({ id: `pay_${String(at).padStart(32, "0")}` });

describe("a page", () => {
  it("has a cursor that leads on exactly where there is more", () => {
    const rows = [idOf(3), idOf(2), idOf(1)];
    const first = pageOf(rows, 2);
    expect(first).toMatchObject({ data: [idOf(3), idOf(2)], hasMore: true });
    expect(readCursor(first.nextCursor, "pay")).toBe(idOf(2).id);
    expect(pageOf(rows, 3)).toEqual({ data: rows, hasMore: false, nextCursor: null });
  });

  it("refuses a cursor that no list has given", () => {
    expect(readCursor(null, "pay")).toBeNull();
    for (const cursor of ["x", Buffer.from("pay_1' or 1=1").toString("base64url")]) {
      expect(() => readCursor(cursor, "pay")).toThrow(expect.objectContaining({ code: "validation_failed" }));
    }
  });

  it("refuses another list's cursor, behind which nothing would be found, or everything again", () => {
    const { nextCursor } = pageOf([idOf(2), idOf(1)], 1);
    for (const prefix of ["evt", "re", "tl"] as const) {
      expect(() => readCursor(nextCursor, prefix)).toThrow(
        expect.objectContaining({ code: "validation_failed" }),
      );
    }
  });
});
