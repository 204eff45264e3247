/**
 * One text for one meaning: no white space, names sorted by UTF-16 code unit at every depth, numbers in their shortest
 * form, strings as JSON.stringify escapes them (RFC 8785). Throws TypeError on what JSON has no form for.
 */
export function canonicalJson(value: unknown): string {
  if (value === null || typeof value === "string" || typeof value === "boolean") return JSON.stringify(value);
  if (typeof value === "number" && Number.isFinite(value)) return JSON.stringify(value);
  if (typeof value === "object") return canonicalContainer(value);
  throw new TypeError(`canonical JSON has no form for this ${typeof value}`);
}

function canonicalContainer(value: object): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    throw new TypeError("canonical JSON takes plain objects only");
  }
  const members = value as Readonly<Record<string, unknown>>;
  const texts = Object.keys(members)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${canonicalJson(members[name])}`);
  return `{${texts.join(",")}}`;
}
