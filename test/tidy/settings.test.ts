import ts from "typescript";
import { describe, expect, it } from "vitest";
import { parse, readText, walk } from "./source-files.js";

const SETTING_NAME = /^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*$/;
/** `PORT` and `HOST` are the shortest. */
const SHORTEST_SETTING = 4;

/** Names in capitals that stand in src/config.ts as a property or as a key in brackets: what it reads. */
function settingsOfConfig(): string[] {
  const names = new Set<string>();
  walk(parse("src/config.ts"), (node) => {
    const name = nameReadAt(node);
    if (name !== undefined && name.length >= SHORTEST_SETTING && SETTING_NAME.test(name)) names.add(name);
  });
  return [...names].sort();
}

function nameReadAt(node: ts.Node): string | undefined {
  if (ts.isPropertyAssignment(node) || ts.isShorthandPropertyAssignment(node)) {
    return ts.isIdentifier(node.name) || ts.isStringLiteral(node.name) ? node.name.text : undefined;
  }
  if (ts.isPropertyAccessExpression(node)) return node.name.text;
  if (ts.isElementAccessExpression(node) && ts.isStringLiteral(node.argumentExpression)) {
    return node.argumentExpression.text;
  }
  return undefined;
}

/** The names in backticks of the first cell of each row of a table whose head says `variable`. */
function settingsOfReadme(): string[] {
  const names: string[] = [];
  let isInTable = false;
  for (const line of readText("README.md").split("\n")) {
    if (!line.startsWith("|")) isInTable = false;
    else if (/^\|\s*variable\s*\|/i.test(line)) isInTable = true;
    else if (isInTable) {
      const [, cell = ""] = line.split("|");
      names.push(...[...cell.matchAll(/`([A-Z][A-Z0-9_]+)`/g)].map(([, name]) => name ?? ""));
    }
  }
  return names.sort();
}

describe("the settings", () => {
  it("that src/config.ts reads are the ones in the README's table, each once", () => {
    expect(settingsOfConfig().length).toBeGreaterThan(0);
    expect(settingsOfReadme()).toEqual(settingsOfConfig());
  });
});
