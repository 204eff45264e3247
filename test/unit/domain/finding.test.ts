import { expect, test } from "vitest";
import { closedAs, distinct, FINDING_KINDS } from "../../../src/domain/finding.js";

test("a finding that is seen no longer is repaired where its kind is mended here, and gone where it is not", () => {
  const states = Object.fromEntries(FINDING_KINDS.map((kind) => [kind, closedAs(kind)]));
  expect(states).toEqual({
    missing_here: "repaired",
    tenant_missing_here: "gone",
    missing_there: "gone",
    amount_differs: "gone",
    currency_differs: "gone",
    status_differs: "repaired",
    status_unrecognized: "gone",
    second_object: "gone",
    orphaned_object: "repaired",
    foreign_object: "gone",
    unreadable_object: "gone",
    fee_differs: "repaired",
    refund_missing_here: "repaired",
    refund_missing_there: "gone",
    second_refund: "gone",
    refund_outside: "repaired",
    refund_differs: "repaired",
    dispute_differs: "repaired",
    event_undelivered: "repaired",
  });
});

test("one difference that two movements tell of is one", () => {
  const one = { kind: "dispute_differs", objectId: "dp_1" } as const;
  expect(
    distinct([
      { ...one, at: 1 },
      { kind: "dispute_differs", objectId: "dp_2", at: 2 },
      { ...one, at: 3 },
    ]),
  ).toEqual([
    { ...one, at: 3 },
    { kind: "dispute_differs", objectId: "dp_2", at: 2 },
  ]);
});
