import { JSON_TYPE, type JsonValue } from "../domain/documents.js";
import type { Page } from "../operations/paging.js";
import type { Answer } from "./problem.js";

export function jsonAnswer(
  status: number,
  document: JsonValue,
  headers: Readonly<Record<string, string>> = {},
): Answer {
  return { status, headers: { "Content-Type": JSON_TYPE, ...headers }, body: JSON.stringify(document) };
}

export function listAnswer<T>(page: Page<T>, documentOf: (item: T) => JsonValue): Answer {
  return jsonAnswer(200, {
    data: page.data.map(documentOf),
    has_more: page.hasMore,
    next_cursor: page.nextCursor,
  });
}
