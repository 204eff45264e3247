import { readdirSync, readFileSync, statSync } from "node:fs";
import { basename, join, relative } from "node:path";
import ts from "typescript";
import { packageRoot } from "../../src/lib/package-root.js";

const ROOT = packageRoot();
const NOT_OURS = new Set(["node_modules", "dist", ".git", ".pawl", "coverage"]);

/** Paths from the root, of every file of the project below `folder`; none where the folder is not there. */
export function filesUnder(folder: string): string[] {
  const start = join(ROOT, folder);
  if (!statSync(start, { throwIfNoEntry: false })?.isDirectory()) return [];
  return readdirSync(start, { withFileTypes: true }).flatMap((entry) => {
    if (NOT_OURS.has(entry.name)) return [];
    const path = join(start, entry.name);
    return entry.isDirectory() ? filesUnder(relative(ROOT, path)) : [relative(ROOT, path)];
  });
}

export function readText(path: string): string {
  return readFileSync(join(ROOT, path), "utf8");
}

export function stem(path: string): string {
  return basename(path).replace(/(\.test)?\.ts$/, "");
}

export function parse(path: string): ts.SourceFile {
  return ts.createSourceFile(path, readText(path), ts.ScriptTarget.ESNext, true);
}

export function walk(node: ts.Node, visit: (node: ts.Node) => void): void {
  visit(node);
  ts.forEachChild(node, (child) => walk(child, visit));
}

/** The name of the outermost function, constant or method that a node stands in. */
export function ownerOf(node: ts.Node): string {
  let name = "(top level)";
  for (let at: ts.Node = node; !ts.isSourceFile(at); at = at.parent) {
    if (ts.isFunctionDeclaration(at) || ts.isMethodDeclaration(at) || ts.isVariableDeclaration(at)) {
      name = at.name?.getText() ?? name;
    }
  }
  return name;
}

/** Whether a file has nothing that runs: types, interfaces and imports alone. */
export function holdsTypesAlone(path: string): boolean {
  return parse(path).statements.every(
    (statement) =>
      ts.isInterfaceDeclaration(statement) ||
      ts.isTypeAliasDeclaration(statement) ||
      ts.isImportDeclaration(statement) ||
      (ts.isExportDeclaration(statement) && statement.isTypeOnly),
  );
}
