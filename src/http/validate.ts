import { isUtf8 } from "node:buffer";
import type { z } from "zod";
import { type FieldFault, PawlError } from "../domain/errors.js";
import { containsCardNumber } from "../lib/card-number.js";
import { parseStrictJson, pointerToken, type StrictJson, StrictJsonError } from "../lib/strict-json.js";

/** The deepest body of this API is two containers deep; the rest is slack for a fault to be named where it is. */
const MAX_DEPTH = 8;
/** A body of thousands of unknown fields gets a bounded answer. */
const MAX_FAULTS = 100;

/** The body as JSON. Throws PawlError: malformed_request, or card_number_refused for a card number in any text. */
export function parseBody(bytes: Buffer): StrictJson {
  if (!isUtf8(bytes)) throw new PawlError("malformed_request", "The body is not valid UTF-8.");
  const text = bytes.toString("utf8");
  if (text.startsWith("\ufeff"))
    throw new PawlError("malformed_request", "The body starts with a byte order mark.");
  const value = strictJson(text);
  const pointers = cardNumberPointers(value);
  if (pointers.length > 0) {
    throw new PawlError(
      "card_number_refused",
      "A text of the request looks like a card number. Send the provider's token instead.",
      { faults: pointers.map((pointer) => ({ pointer, detail: "looks like a card number" })) },
    );
  }
  return value;
}

function strictJson(text: string): StrictJson {
  try {
    return parseStrictJson(text, MAX_DEPTH);
  } catch (error) {
    if (!(error instanceof StrictJsonError)) throw error;
    throw new PawlError("malformed_request", "The body is not JSON as this API takes it.", {
      faults: [fault(error.pointer, error.message)],
    });
  }
}

/** A name that looks like a card number is answered with its parent's pointer: the number itself is never shown. */
function cardNumberPointers(root: StrictJson): string[] {
  const found: string[] = [];
  const visit = (value: StrictJson, pointer: string): void => {
    if (found.length >= MAX_FAULTS) return;
    if (typeof value === "string") {
      if (containsCardNumber(value)) found.push(pointer);
    } else if (typeof value === "object" && value !== null) {
      for (const [name, member] of Object.entries(value)) {
        if (containsCardNumber(name)) found.push(pointer);
        else visit(member, `${pointer}/${pointerToken(name)}`);
      }
    }
  };
  visit(root, "");
  return found;
}

/** The value with its defaults applied. Throws PawlError validation_failed with every fault, up to 100. */
export function validated<T>(schema: z.ZodType<T>, value: unknown): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const faults = result.error.issues.flatMap((issue) => faultsOf(issue, (path) => pointerOf(path)));
  throw invalid("The request is not valid; see `errors`.", faults);
}

/**
 * Throws PawlError validation_failed for a request target that is not percent-encoded UTF-8, naming each such parameter
 * as `?name`: the URL parser would put other characters in its place, and another value would be looked for.
 */
export function requireReadable(target: string): void {
  if (isReadable(target)) return;
  const start = target.indexOf("?");
  const parameters = start === -1 ? [] : target.slice(start + 1).split("&");
  const faults = parameters
    .filter((parameter) => !isReadable(parameter))
    .map((parameter) => parameter.split("=", 1)[0] ?? "")
    .map((name) => fault(isReadable(name) ? `?${decodeURIComponent(name)}` : "?", NOT_READABLE));
  // Nothing names a piece of the path.
  const named = faults.length === 0 ? {} : { faults: faults.slice(0, MAX_FAULTS) };
  throw new PawlError("validation_failed", `The URL ${NOT_READABLE}.`, named);
}

const NOT_READABLE = "must be percent-encoded UTF-8";

function isReadable(encoded: string): boolean {
  if (!encoded.includes("%")) return true;
  try {
    decodeURIComponent(encoded);
    return true;
  } catch {
    return false;
  }
}

/**
 * The query as `schema` has it. Throws PawlError validation_failed naming each parameter that is unknown, repeated or
 * wrong as `?name`.
 */
export function validatedQuery<T>(schema: z.ZodType<T>, url: string): T {
  const start = url.indexOf("?");
  const parameters = new URLSearchParams(start === -1 ? "" : url.slice(start + 1));
  const values = Object.create(null) as Record<string, string>;
  const repeated: FieldFault[] = [];
  for (const [name, value] of parameters) {
    if (name in values) repeated.push(fault(`?${name}`, "must not be repeated"));
    values[name] = value;
  }
  const result = schema.safeParse(values);
  if (result.success && repeated.length === 0) return result.data;
  const wrong = result.error?.issues.flatMap((issue) =>
    faultsOf(issue, (path) => `?${path.map(String).join("/")}`),
  );
  throw invalid("The query is not valid; see `errors`.", [...repeated, ...(wrong ?? [])]);
}

function invalid(detail: string, faults: readonly FieldFault[]): PawlError {
  return new PawlError("validation_failed", detail, { faults: faults.slice(0, MAX_FAULTS) });
}

function faultsOf(issue: z.core.$ZodIssue, pointer: (path: readonly PropertyKey[]) => string): FieldFault[] {
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => fault(pointer([...issue.path, key]), "is not a known field"));
  }
  return [fault(pointer(issue.path), issue.message)];
}

function pointerOf(path: readonly PropertyKey[]): string {
  return path.map((token) => `/${pointerToken(String(token))}`).join("");
}

/** Names come from the request, so they may hold what must never be shown. */
function fault(pointer: string, detail: string): FieldFault {
  return { pointer: containsCardNumber(pointer) ? "" : pointer, detail };
}
