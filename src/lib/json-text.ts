/** What JSON has a form for, and whole numbers of any size. */
export type ExactJson =
  | string
  | number
  | bigint
  | boolean
  | null
  | readonly ExactJson[]
  | { readonly [name: string]: ExactJson };

/** As JSON.stringify writes it, save that a bigint, which that refuses, is an integer digit for digit. */
export function jsonText(value: ExactJson): string {
  if (typeof value === "bigint") return value.toString();
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (isList(value)) return `[${value.map(jsonText).join(",")}]`;
  const members = Object.entries(value).map(
    ([name, member]) => `${JSON.stringify(name)}:${jsonText(member)}`,
  );
  return `{${members.join(",")}}`;
}

/** Array.isArray does not narrow what may also be a readonly array. */
function isList(value: ExactJson): value is readonly ExactJson[] {
  return Array.isArray(value);
}
