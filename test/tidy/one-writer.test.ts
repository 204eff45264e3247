import ts from "typescript";
import { describe, expect, it } from "vitest";
import { filesUnder, parse, walk } from "./source-files.js";
import { HIDDEN, type SqlUpdate, updatesOf } from "./sql-updates.js";

function maySetStatus({ columns }: SqlUpdate): boolean {
  return columns.includes("status") || columns.includes(HIDDEN);
}

function names(file: string, name: string): boolean {
  const found: ts.Node[] = [];
  walk(parse(file), (node) => {
    if (ts.isIdentifier(node) && node.text === name) found.push(node);
  });
  return found.length > 0;
}

function filesThatName(name: string): string[] {
  const files = [...filesUnder("src"), ...filesUnder("workers")].filter((path) => path.endsWith(".ts"));
  return files.filter((file) => names(file, name));
}

describe("a payment's status", () => {
  const writers = updatesOf("payments").filter(maySetStatus);

  it("is written by one statement of one function, in the store", () => {
    expect(
      writers.map(({ file, owner }) => ({ folder: file.split("/").slice(0, 2).join("/"), owner })),
    ).toEqual([{ folder: "src/store", owner: expect.any(String) as string }]);
  });

  it("is moved by one operation alone, which is the only caller of that function", () => {
    const [writer] = writers;
    if (writer === undefined) throw new Error("no function of the store writes a payment's status");
    const callers = filesThatName(writer.owner).filter((file) => file !== writer.file);
    expect(callers).toEqual([expect.stringMatching(/^src\/operations\//)]);
  });

  it("is compared with the status that the writer read, so that two writers cannot both win", () => {
    expect(writers.length).toBeGreaterThan(0);
    for (const writer of writers) {
      expect(writer.where, `${writer.file} ${writer.owner}`).toMatch(/\bstatus\b/);
      expect(writer.where, `${writer.file} ${writer.owner}`).toMatch(/\bversion\b/);
    }
  });
});
