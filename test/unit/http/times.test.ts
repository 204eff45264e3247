import { expect, test } from "vitest";
import { paymentsQuery } from "../../../src/http/schemas.js";

test.each(["0000-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])(
  "a time that no year from 1 to 9999 of UTC holds is refused: %s",
  (time) => {
    expect(paymentsQuery.safeParse({ created_after: time }).success).toBe(false);
    expect(paymentsQuery.safeParse({ created_before: time }).success).toBe(false);
  },
);

test("the first and the last second of those years are taken", () => {
  for (const time of ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"]) {
    expect(paymentsQuery.safeParse({ created_after: time }).success).toBe(true);
  }
});
