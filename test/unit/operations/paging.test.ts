import { describe, expect, it } from "vitest";
import { pageOf, readCursor } from "../../../src/operations/paging.js";

const idOf = (at: number) => ({ id: `pay_${String(at).padStart(32, "0")}` });

describe("a page", () => {
  it("has a cursor that leads on exactly where there is more", () => {
    const rows = [idOf(3), idOf(2), idOf(1)];
    const first = pageOf(rows, 2);
    expect(first).toMatchObject({ data: [idOf(3), idOf(2)], hasMore: true });
    expect(readCursor(first.nextCursor)).toBe(idOf(2).id);
    expect(pageOf(rows, 3)).toEqual({ data: rows, hasMore: false, nextCursor: null });
  });

  it("refuses a cursor that no list has given", () => {
    expect(readCursor(null)).toBeNull();
    for (const cursor of ["x", Buffer.from("pay_1' or 1=1").toString("base64url")]) {
      expect(() => readCursor(cursor)).toThrow(expect.objectContaining({ code: "validation_failed" }));
    }
  });
});
