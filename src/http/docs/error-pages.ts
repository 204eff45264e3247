import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Marked } from "marked";
import { ERROR_CODES, type ErrorCode } from "../../domain/errors.js";
import { packageRoot } from "../../lib/package-root.js";
import { escapeHtml, page } from "./html.js";

const markdown = new Marked({
  renderer: {
    // The pages are ours, and still nothing in them may become markup that Markdown does not make.
    html: ({ text }) => escapeHtml(text),
  },
  walkTokens: (token) => {
    // In the repository the pages link to each other as files.
    if (token.type === "link")
      token["href"] = String(token["href"]).replace(/^([a-z_]+)\.md$/, "/docs/errors/$1");
  },
});

export function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(ERROR_CODES, text);
}

/** The page that a problem's `type` links to, made from docs/errors/<code>.md. */
export function errorPage(code: ErrorCode): string {
  const text = readFileSync(join(packageRoot(), "docs", "errors", `${code}.md`), "utf8");
  return page(`${code} — Pawl`, markdown.parse(text, { async: false }));
}

export function errorIndexPage(): string {
  const rows = Object.entries(ERROR_CODES).map(
    ([code, { status, title }]) =>
      `<tr><td>${status}</td><td><a href="/docs/errors/${code}"><code>${code}</code></a></td><td>${escapeHtml(title)}</td></tr>`,
  );
  const table = `<div class="scroll"><table><tr><th>Status</th><th>Code</th><th>Title</th></tr>${rows.join("\n")}</table></div>`;
  return page("Errors — Pawl", `<h1>Errors</h1>\n${table}`);
}
