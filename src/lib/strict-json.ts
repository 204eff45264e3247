/** Why a text is not the JSON that we take, and where. `pointer` is RFC 6901; "" is the whole document. */
export class StrictJsonError extends Error {
  override readonly name = "StrictJsonError";
  readonly pointer: string;

  constructor(pointer: string, message: string) {
    super(message);
    this.pointer = pointer;
  }
}

/** Objects have no prototype, so that `__proto__` and `constructor` are names like any other. */
export type StrictJson = string | number | boolean | null | StrictJson[] | { [name: string]: StrictJson };

const NUMBER = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/y;
const PLAIN_INTEGER = /^(?:0|[1-9][0-9]{0,14})$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: RFC 8259 section 7 refuses these unescaped
const NEEDS_CARE = /[\\\u0000-\u001f]/;
const HEX4 = /^[0-9a-fA-F]{4}$/;
const ESCAPES: Readonly<Record<string, string>> = {
  '"': '"',
  "\\": "\\",
  "/": "/",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
};

/** One RFC 6901 reference token. */
export function pointerToken(name: string | number): string {
  return String(name).replaceAll("~", "~0").replaceAll("/", "~1");
}

/**
 * The whole number that a JSON number literal stands for (`1e3` and `1000.0` are 1000), or NaN where it is none that
 * a double holds exactly: a fraction, more than 2^53 - 1 in size, or negative zero. Nothing is ever rounded.
 */
export function exactInteger(literal: string): number {
  if (PLAIN_INTEGER.test(literal)) return Number(literal);
  const negative = literal.startsWith("-");
  const [mantissa = "", exponentText = "0"] = (negative ? literal.slice(1) : literal)
    .toLowerCase()
    .split("e");
  const [whole = "", fraction = ""] = mantissa.split(".");
  const digits = withoutZeros(whole + fraction);
  if (digits.significant === "") return negative ? Number.NaN : 0;
  const zeros = Number(exponentText) - fraction.length + digits.trailing;
  if (zeros < 0 || !(digits.significant.length + zeros <= 16)) return Number.NaN;
  const value = Number(digits.significant + "0".repeat(zeros));
  if (!Number.isSafeInteger(value)) return Number.NaN;
  return negative ? -value : value;
}

/** Loops, since `/0+$/` takes quadratic time on a run of zeros that is not at the end. */
function withoutZeros(digits: string): { significant: string; trailing: number } {
  let start = 0;
  while (digits[start] === "0") start++;
  let end = digits.length;
  while (end > start && digits[end - 1] === "0") end--;
  return { significant: digits.slice(start, end), trailing: digits.length - end };
}

/**
 * Parses one JSON document (RFC 8259) and refuses what parsers differ about or repair: duplicate member names, lone
 * surrogates, NUL, nesting beyond `maxDepth` containers. Numbers are read by `exactInteger`; a NaN in the result is a
 * number that no field may take. Linear in the text, recursive up to `maxDepth` only. Throws StrictJsonError.
 */
export function parseStrictJson(text: string, maxDepth: number): StrictJson {
  return new Parser(text, maxDepth).document();
}

class Parser {
  private position = 0;
  private readonly path: (string | number)[] = [];

  constructor(
    private readonly text: string,
    private readonly maxDepth: number,
  ) {}

  document(): StrictJson {
    const value = this.value();
    if (this.peek() !== "") this.fail("more text after the end of the document");
    return value;
  }

  private fail(message: string): never {
    throw new StrictJsonError(this.path.map((token) => `/${pointerToken(token)}`).join(""), message);
  }

  /** The next character that is not white space, "" at the end. */
  private peek(): string {
    for (;;) {
      const code = this.text.charCodeAt(this.position);
      if (code !== 32 && code !== 10 && code !== 13 && code !== 9) return this.text.charAt(this.position);
      this.position++;
    }
  }

  private value(): StrictJson {
    switch (this.peek()) {
      case '"':
        return this.string();
      case "{":
        return this.object();
      case "[":
        return this.array();
      case "t":
        return this.word("true", true);
      case "f":
        return this.word("false", false);
      case "n":
        return this.word("null", null);
      case "":
        return this.fail("the text ends where a value is needed");
      default:
        return this.number();
    }
  }

  private word<T extends boolean | null>(word: string, value: T): T {
    if (!this.text.startsWith(word, this.position)) this.fail("not a JSON value");
    this.position += word.length;
    return value;
  }

  private number(): number {
    NUMBER.lastIndex = this.position;
    const literal = NUMBER.exec(this.text)?.[0];
    if (literal === undefined) return this.fail("not a JSON value");
    this.position += literal.length;
    return exactInteger(literal);
  }

  private enter(): void {
    if (this.path.length >= this.maxDepth) this.fail(`nested more than ${this.maxDepth} deep`);
    this.position++;
  }

  private object(): { [name: string]: StrictJson } {
    this.enter();
    const object = Object.create(null) as { [name: string]: StrictJson };
    if (this.peek() === "}") {
      this.position++;
      return object;
    }
    for (;;) {
      if (this.peek() !== '"') this.fail("a member name in quotes is needed");
      const name = this.string();
      this.path.push(name);
      if (name in object) this.fail("the member is there twice");
      if (this.peek() !== ":") this.fail("a colon is needed after the member name");
      this.position++;
      object[name] = this.value();
      this.path.pop();
      if (this.ends("}")) return object;
    }
  }

  private array(): StrictJson[] {
    this.enter();
    const array: StrictJson[] = [];
    if (this.peek() === "]") {
      this.position++;
      return array;
    }
    for (;;) {
      this.path.push(array.length);
      array.push(this.value());
      this.path.pop();
      if (this.ends("]")) return array;
    }
  }

  /** Steps over a comma, or over the container's end: then true. */
  private ends(close: "}" | "]"): boolean {
    const next = this.peek();
    if (next !== "," && next !== close) this.fail(`a comma or ${close} is needed`);
    this.position++;
    return next === close;
  }

  private string(): string {
    const start = this.position + 1;
    const end = this.text.indexOf('"', start);
    if (end === -1) this.fail("the text ends inside a string");
    const plain = this.text.slice(start, end);
    if (NEEDS_CARE.test(plain)) return this.escapedString(start);
    this.position = end + 1;
    return plain;
  }

  private escapedString(start: number): string {
    const parts: string[] = [];
    let from = start;
    let at = start;
    for (;;) {
      const code = this.text.charCodeAt(at);
      if (Number.isNaN(code)) this.fail("the text ends inside a string");
      if (code < 32) this.fail("a control character must be escaped");
      if (code === 34) break;
      if (code !== 92) {
        at++;
        continue;
      }
      parts.push(this.text.slice(from, at), this.escape(at));
      at += this.text.charAt(at + 1) === "u" ? 6 : 2;
      from = at;
    }
    this.position = at + 1;
    const value = parts.join("") + this.text.slice(from, at);
    if (value.includes("\u0000")) this.fail("the NUL character is not accepted");
    if (hasLoneSurrogate(value)) this.fail("half of a surrogate pair is not a character");
    return value;
  }

  private escape(at: number): string {
    const letter = this.text.charAt(at + 1);
    if (letter !== "u") return ESCAPES[letter] ?? this.fail("not a JSON escape");
    const hex = this.text.slice(at + 2, at + 6);
    if (!HEX4.test(hex)) this.fail("not a JSON escape");
    return String.fromCharCode(Number.parseInt(hex, 16));
  }
}

function hasLoneSurrogate(text: string): boolean {
  return /\p{Surrogate}/u.test(text);
}
