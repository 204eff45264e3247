import { describe, expect, it } from "vitest";
import { ATTEMPT_STATES } from "../../src/domain/attempt.js";
import { attemptMachine } from "../../src/domain/attempt-machine.js";
import { effectMachine } from "../../src/domain/effect-machine.js";
import { PAYMENT_STATUSES } from "../../src/domain/payment.js";
import { paymentMachine } from "../../src/domain/payment-machine.js";
import { REFUND_STATUSES } from "../../src/domain/refund.js";
import { refundMachine } from "../../src/domain/refund-machine.js";
import { filesUnder, readText } from "./source-files.js";

/** The statuses that clients were promised. A new one is a change of the API, and of this list. */
const PUBLISHED_STATUSES = [
  "processing",
  "requires_action",
  "authorized",
  "succeeded",
  "failed",
  "canceled",
  "needs_review",
];

const PUBLISHED_REFUND_STATUSES = ["processing", "succeeded", "failed", "needs_review"];

interface Snapshot {
  readonly enums: Record<string, { readonly name: string; readonly values: readonly string[] }>;
  readonly tables: Record<
    string,
    {
      readonly name: string;
      readonly columns: Record<string, { readonly name: string; readonly type: string }>;
      readonly checkConstraints: Record<string, { readonly value: string }>;
    }
  >;
}

/** The schema as the last migration leaves it. */
function lastSnapshot(): Snapshot {
  const [last] = filesUnder("drizzle/meta")
    .filter((path) => path.endsWith("_snapshot.json"))
    .sort()
    .reverse();
  if (last === undefined) throw new Error("no migration has been generated");
  return JSON.parse(readText(last)) as Snapshot;
}

/** The values that the database lets into a column: those of its enum type, or of its check constraint. */
function allowedIn(tableName: string, columnName: string): string[] {
  const snapshot = lastSnapshot();
  const table = Object.values(snapshot.tables).find(({ name }) => name === tableName);
  const column = table?.columns[columnName];
  if (table === undefined || column === undefined) throw new Error(`no column ${tableName}.${columnName}`);
  const enumType = Object.values(snapshot.enums).find(({ name }) => name === column.type);
  if (enumType !== undefined) return [...enumType.values];
  const list = new RegExp(`\\b${columnName}"?\\s+in\\s*\\(([^)]*)\\)`, "i");
  const lists = Object.values(table.checkConstraints).map(({ value }) => list.exec(value)?.[1]);
  const [values] = lists.filter((found) => found !== undefined);
  if (values === undefined) throw new Error(`nothing limits ${tableName}.${columnName} to known values`);
  return [...values.matchAll(/'([^']*)'/g)].map(([, value]) => value ?? "");
}

const sorted = (values: readonly string[]) => [...values].sort();

describe("the states of a payment", () => {
  it("are the same in the machine, the type and the published contract", () => {
    expect(sorted(Object.keys(paymentMachine.states))).toEqual(sorted(PUBLISHED_STATUSES));
    expect(sorted(PAYMENT_STATUSES)).toEqual(sorted(PUBLISHED_STATUSES));
  });

  it("are the only ones that the database takes", () => {
    expect(sorted(allowedIn("payments", "status"))).toEqual(sorted(PUBLISHED_STATUSES));
  });
});

describe("the states of a refund", () => {
  it("are the same in the machine, the type and the published contract", () => {
    expect(sorted(Object.keys(refundMachine.states))).toEqual(sorted(PUBLISHED_REFUND_STATUSES));
    expect(sorted(REFUND_STATUSES)).toEqual(sorted(PUBLISHED_REFUND_STATUSES));
  });

  it("are the only ones that the database takes", () => {
    expect(sorted(allowedIn("refunds", "status"))).toEqual(sorted(PUBLISHED_REFUND_STATUSES));
  });
});

describe("the states of an attempt", () => {
  it("are the same in the two machines together and the type", () => {
    const states = [attemptMachine, effectMachine].flatMap((machine) => Object.keys(machine.states));
    expect(sorted([...new Set(states)])).toEqual(sorted(ATTEMPT_STATES));
  });

  it("are the only ones that the database takes", () => {
    expect(sorted(allowedIn("attempts", "state"))).toEqual(sorted(ATTEMPT_STATES));
  });
});
