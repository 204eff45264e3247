import ts from "typescript";
import { describe, expect, it } from "vitest";
import { filesUnder, ownerOf, parse, walk } from "./source-files.js";

/** What makes several statements one transaction: of postgres.js, and of Drizzle over it. */
const TRANSACTIONS = new Set(["begin", "reserve", "savepoint", "transaction"]);
/** Objects of ours that begin something else. */
const OURS = new Set(["this", "recovery", "comparison"]);
/** Runs before anything is served or worked on: a start that the database cuts off is a failed start. */
const AT_START = ["src/store/migrate.ts"];

/** The name that a method is called on: `begin` of `deps.db.sql.begin(…)` is called on `sql`. */
function receiverOf(node: ts.PropertyAccessExpression): string {
  const on = node.expression;
  return ts.isPropertyAccessExpression(on) ? on.name.text : on.getText();
}

function transactionsIn(file: string): string[] {
  const found: string[] = [];
  walk(parse(file), (node) => {
    if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return;
    const { name } = node.expression;
    if (TRANSACTIONS.has(name.text) && !OURS.has(receiverOf(node.expression))) {
      found.push(`${file} ${ownerOf(node)}: ${node.expression.getText()}`);
    }
  });
  return found;
}

describe("a running process", () => {
  const files = [...filesUnder("src"), ...filesUnder("workers")].filter((path) => path.endsWith(".ts"));

  it("makes each write by one statement: a session that ends inside a transaction would end the process", () => {
    const found = files.filter((file) => !AT_START.includes(file)).flatMap(transactionsIn);
    expect(found).toEqual([]);
  });

  it("is looked through by what finds the transaction of the migrations", () => {
    expect(AT_START.flatMap(transactionsIn)).toEqual(["src/store/migrate.ts migrate: guard.begin"]);
  });
});
