import ts from "typescript";
import { filesUnder, ownerOf, parse, walk } from "./source-files.js";

/** One `update <table>` as the source writes it: an SQL text or Drizzle's builder. */
export interface SqlUpdate {
  readonly file: string;
  readonly owner: string;
  /** What is assigned, as text: the set clause, or the argument of `.set()`. */
  readonly set: string;
  /** The columns assigned; HIDDEN stands for what the text does not show (a fragment, a spread, a variable). */
  readonly columns: readonly string[];
  /** The condition, as text; empty where there is none. */
  readonly where: string;
}

export const HIDDEN = "(hidden)";

/** Every update of `table` in src and workers, upserts included. */
export function updatesOf(table: string): SqlUpdate[] {
  const files = [...filesUnder("src"), ...filesUnder("workers")].filter((path) => path.endsWith(".ts"));
  return files.flatMap((file) => {
    const found: SqlUpdate[] = [];
    walk(parse(file), (node) => {
      const owner = ownerOf(node);
      for (const clauses of [...inText(node, table), ...inBuilder(node, table)]) {
        found.push({ file, owner, ...clauses });
      }
    });
    return found;
  });
}

type Clauses = Pick<SqlUpdate, "set" | "where" | "columns">;

function inText(node: ts.Node, table: string): Clauses[] {
  const sql = sqlTextOf(node);
  if (sql === undefined) return [];
  const statement = new RegExp(
    `\\bupdate\\s+(?:only\\s+)?"?${table}"?(?:\\s+(?:as\\s+)?(?!set\\b)\\w+)?\\s+set\\b` +
      `|\\binsert\\s+into\\s+"?${table}"?\\b[^;]*?\\bdo\\s+update\\s+set\\b`,
    "gi",
  );
  return [...sql.matchAll(statement)].map((match) => {
    const rest = topLevel(sql.slice(match.index + match[0].length));
    const setEnd = rest.search(/\b(?:from|where|returning)\b|;/i);
    const set = setEnd < 0 ? rest : rest.slice(0, setEnd);
    const [, where = ""] = /\bwhere\b(.*?)(?:\breturning\b|;|$)/is.exec(rest) ?? [];
    return { set, where, columns: splitAtCommas(set).flatMap(columnsOfSql) };
  });
}

/** A template's text with each `${a.b}` as the bare name `b`, so that `update ${payments} set` reads as SQL. */
function sqlTextOf(node: ts.Node): string | undefined {
  if (ts.isNoSubstitutionTemplateLiteral(node) || ts.isStringLiteral(node)) return withoutComments(node.text);
  if (!ts.isTemplateExpression(node)) return undefined;
  const spans = node.templateSpans.map(({ expression, literal }) => {
    const text = expression.getText();
    return `${/^[\w.]+$/.test(text) ? (text.split(".").at(-1) ?? "") : `\${${text}}`}${literal.text}`;
  });
  return withoutComments(node.head.text + spans.join(""));
}

function withoutComments(sql: string): string {
  return sql.replace(/--.*$/gm, "").replace(/\/\*.*?\*\//gs, "");
}

/** The parts between the commas that stand in no bracket. */
function splitAtCommas(text: string): string[] {
  const parts = [""];
  let depth = 0;
  for (const letter of text) {
    if ("([{".includes(letter)) depth += 1;
    if (")]}".includes(letter)) depth -= 1;
    if (letter === "," && depth === 0) parts.push("");
    else parts[parts.length - 1] = `${parts.at(-1) ?? ""}${letter}`;
  }
  return parts.map((part) => part.trim()).filter((part) => part !== "");
}

function columnsOfSql(assignment: string): string[] {
  const tuple = /^\(([^)]*)\)\s*=/.exec(assignment)?.[1];
  if (tuple !== undefined) return tuple.split(",").map((name) => name.trim());
  return [/^"?(\w+)"?\s*=/.exec(assignment)?.[1] ?? HIDDEN];
}

function columnsOfObject(node: ts.Node | undefined): string[] {
  if (node === undefined || !ts.isObjectLiteralExpression(node)) return [HIDDEN];
  return node.properties.map((property) =>
    property.name !== undefined && (ts.isIdentifier(property.name) || ts.isStringLiteral(property.name))
      ? property.name.text
      : HIDDEN,
  );
}

/** The text up to the parenthesis that closes the statement around it (a CTE's end). */
function topLevel(sql: string): string {
  let depth = 0;
  for (let at = 0; at < sql.length; at += 1) {
    if (sql[at] === "(") depth += 1;
    if (sql[at] === ")") depth -= 1;
    if (depth < 0) return sql.slice(0, at);
  }
  return sql;
}

/** `x.update(table).set(…).where(…)`, found at its `.set(…)`. */
function inBuilder(node: ts.Node, table: string): Clauses[] {
  if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return [];
  if (node.expression.name.text !== "set") return [];
  const start = node.expression.expression;
  if (!ts.isCallExpression(start) || !ts.isPropertyAccessExpression(start.expression)) return [];
  const updated = start.arguments[0]?.getText().split(".").at(-1);
  if (start.expression.name.text !== "update" || updated !== table) return [];
  const condition = ts.isPropertyAccessExpression(node.parent) && node.parent.name.text === "where";
  const call = condition ? node.parent.parent : undefined;
  const where = call !== undefined && ts.isCallExpression(call) ? (call.arguments[0]?.getText() ?? "") : "";
  const assigned = node.arguments[0];
  return [{ set: assigned?.getText() ?? "", where, columns: columnsOfObject(assigned) }];
}
