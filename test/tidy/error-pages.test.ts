import { describe, expect, it } from "vitest";
import { ERROR_CODES } from "../../src/domain/errors.js";
import { filesUnder, readText, stem } from "./source-files.js";

const FOLDER = "docs/errors/";

describe("the error codes", () => {
  const pages = filesUnder("docs/errors").filter((path) => path.endsWith(".md"));
  const codes = Object.keys(ERROR_CODES);

  it("have a page each, and no page is left of a code that is gone", () => {
    expect(pages.map((path) => stem(path).replace(/\.md$/, "")).sort()).toEqual([...codes].sort());
  });

  it.each(Object.entries(ERROR_CODES))("%s has a page that names it and its status", (code, { status }) => {
    const text = readText(`${FOLDER}${code}.md`);
    expect(text).toContain(code);
    expect(text).toContain(String(status));
  });
});
