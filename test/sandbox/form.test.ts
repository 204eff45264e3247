import { describe, expect, it } from "vitest";
import { canonicalForm, FormError, listOf, parseForm } from "../../src/sandbox/form.js";

function plain(text: string): unknown {
  return JSON.parse(JSON.stringify(parseForm(text)));
}

describe("the form encoding", () => {
  it("nests maps and lists as Stripe's clients write them", () => {
    expect(plain("a=1&b[c]=2&b[d][e]=3+4&f=%E2%82%AC")).toEqual({
      a: "1",
      b: { c: "2", d: { e: "3 4" } },
      f: "€",
    });
    const { expand } = parseForm("expand[]=x&expand[]=y");
    expect(listOf(expand)).toEqual(["x", "y"]);
    expect(listOf(parseForm("expand[0]=x&expand[1]=y")["expand"])).toEqual(["x", "y"]);
    expect(listOf(parseForm("expand=x")["expand"])).toBeNull();
  });

  it("keeps numeric-looking metadata keys as keys", () => {
    expect(plain("metadata[10]=a&metadata[9]=b")).toEqual({ metadata: { "9": "b", "10": "a" } });
  });

  it("treats names of an object's own machinery as plain names", () => {
    const params = parseForm("__proto__[polluted]=1&constructor=2&metadata[__proto__]=3");
    expect(Object.keys(params)).toEqual(["__proto__", "constructor", "metadata"]);
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });

  it.each(["a=%ZZ", "a[b=1", "a[b][c][d][e][f][g]=1", "a=1&a[b]=2", Array(1002).fill("a=1").join("&")])(
    "refuses %.30s",
    (text) => {
      expect(() => parseForm(text)).toThrow(FormError);
    },
  );

  it("gives one text for one meaning, whatever the order, and another for another", () => {
    const first = canonicalForm(parseForm("a=1&b[c]=2&b[d]=3"));
    expect(canonicalForm(parseForm("b[d]=3&b[c]=2&a=1"))).toBe(first);
    expect(canonicalForm(parseForm("a=1&b[c]=3&b[d]=2"))).not.toBe(first);
    expect(canonicalForm(parseForm("a=1%22"))).not.toBe(canonicalForm(parseForm("a=1")));
  });
});
