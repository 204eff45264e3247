/** Parameters of a request as Stripe's form encoding nests them: `a[b]=c`, `a[]=x`, `a[0]=x`. Values are text. */
export interface Params {
  [name: string]: string | Params;
}

/** The text is no form encoding, or nests beyond need. The message is meant for the caller. */
export class FormError extends Error {}

const MOST_PAIRS = 1000;
const MOST_DEPTH = 6;

/** Parses a query string or an `application/x-www-form-urlencoded` body. Throws FormError. */
export function parseForm(text: string): Params {
  const params = emptyParams();
  if (text === "") return params;
  const pairs = text.split("&");
  if (pairs.length > MOST_PAIRS) throw new FormError("Too many parameters.");
  for (const pair of pairs) {
    if (pair === "") continue;
    const equals = pair.indexOf("=");
    const name = decode(equals === -1 ? pair : pair.slice(0, equals));
    const value = equals === -1 ? "" : decode(pair.slice(equals + 1));
    if (name.includes("[")) setNested(params, name, value);
    else params[name] = value;
  }
  return params;
}

/** The values of `a[]=x&a[]=y`, `a[0]=x&a[1]=y`; null where the parameter is absent or a plain value. */
export function listOf(value: string | Params | undefined): (string | Params)[] | null {
  if (value === undefined || typeof value === "string") return null;
  const keys = Object.keys(value);
  if (!keys.every((key) => /^\d+$/.test(key))) return null;
  return keys.map((key) => value[key] as string | Params);
}

/** One text for equal parameters, in whatever order they were sent. */
export function canonicalForm(params: Params): string {
  const names = Object.keys(params).sort();
  let text = "{";
  for (const name of names) {
    const value = params[name] as string | Params;
    text += `${JSON.stringify(name)}:${typeof value === "string" ? JSON.stringify(value) : canonicalForm(value)},`;
  }
  return `${text}}`;
}

// Without a prototype, a parameter called `__proto__` or `constructor` is a parameter like any other.
function emptyParams(): Params {
  return Object.create(null) as Params;
}

function setNested(params: Params, name: string, value: string): void {
  const open = name.indexOf("[");
  const path = [name.slice(0, open)];
  let at = open;
  while (at < name.length) {
    const close = name.indexOf("]", at);
    if (name[at] !== "[" || close === -1) throw new FormError(`Invalid parameter name: ${name}`);
    path.push(name.slice(at + 1, close));
    at = close + 1;
  }
  if (path.length > MOST_DEPTH) throw new FormError(`Parameter nested too deep: ${path[0] ?? ""}`);
  let holder = params;
  for (const [index, part] of path.entries()) {
    const key = part === "" && index > 0 ? String(Object.keys(holder).length) : part;
    if (index === path.length - 1) {
      holder[key] = value;
      return;
    }
    const inner = holder[key];
    if (typeof inner === "string")
      throw new FormError(`Parameter is both a value and a map: ${path[0] ?? ""}`);
    holder = inner ?? (holder[key] = emptyParams());
  }
}

function decode(text: string): string {
  const spaced = text.includes("+") ? text.replaceAll("+", " ") : text;
  if (!spaced.includes("%")) return spaced;
  try {
    return decodeURIComponent(spaced);
  } catch {
    throw new FormError("Invalid form encoding.");
  }
}
