import { JSON_TYPE } from "../../domain/documents.js";
import { PawlError } from "../../domain/errors.js";
import { apiPage } from "../docs/api-page.js";
import { errorIndexPage, errorPage, isErrorCode } from "../docs/error-pages.js";
import { STYLE_SHEET } from "../docs/html.js";
import type { Documented } from "../endpoint.js";
import type { Work } from "../exchange.js";
import { openApiDocument } from "../openapi.js";
import type { Answer } from "../problem.js";

/** No script, no frame, nothing from another host: the pages cannot be made to fetch or leak anything. */
const PAGE_HEADERS = {
  "Content-Security-Policy":
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "Referrer-Policy": "no-referrer",
  "Cache-Control": "no-cache",
};

function pageAnswer(body: string, type = "text/html; charset=utf-8"): Answer {
  return { status: 200, headers: { ...PAGE_HEADERS, "Content-Type": type }, body };
}

/** The pages by Hono path, readable without a key. What can be rendered once is rendered when the app is made. */
export function docsPages(calls: readonly Documented[]): ReadonlyMap<string, Work> {
  const document = openApiDocument(calls);
  const openApi = JSON.stringify(document);
  const api = apiPage(document);
  const errors = errorIndexPage();
  return new Map<string, Work>([
    ["/openapi.json", () => pageAnswer(openApi, JSON_TYPE)],
    ["/docs", () => pageAnswer(api)],
    ["/docs/style.css", () => pageAnswer(STYLE_SHEET, "text/css; charset=utf-8")],
    ["/docs/errors", () => pageAnswer(errors)],
    [
      "/docs/errors/:code",
      ({ http }) => {
        const code = http.req.param("code") ?? "";
        if (!isErrorCode(code)) throw new PawlError("not_found", "There is no error with this code.");
        return pageAnswer(errorPage(code));
      },
    ],
  ]);
}
