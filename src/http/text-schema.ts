import { z } from "@hono/zod-openapi";

export interface TextRule {
  /** Characters (code points), as JSON Schema's maxLength counts them. */
  readonly most: number;
  /** Printable ASCII alone: tokens, ids and what a bank prints. */
  readonly visibleAscii?: boolean | "with spaces";
  /** Line breaks and tabs are welcome. */
  readonly lines?: boolean;
}

const NOT_A_STRING = "must be a string";
const REQUIRED = "is required";

/** Fewer UTF-16 units than the limit are never too many characters, so most texts are not counted. */
export function hasAtMost(text: string, most: number): boolean {
  if (text.length <= most) return true;
  if (text.length > 2 * most) return false;
  let count = 0;
  for (const _character of text) count++;
  return count <= most;
}

function allowed(rule: TextRule): { readonly pattern: RegExp; readonly message: string } {
  if (rule.visibleAscii === true)
    return { pattern: /^[\x21-\x7e]*$/, message: "must be printable ASCII without spaces" };
  if (rule.visibleAscii === "with spaces")
    return { pattern: /^[\x20-\x7e]*$/, message: "must be printable ASCII" };
  return rule.lines === true
    ? {
        pattern: /^(?:[^\p{Cc}]|[\t\n\r])*$/u,
        message: "must not hold control characters but line breaks and tabs",
      }
    : { pattern: /^[^\p{Cc}]*$/u, message: "must not hold control characters" };
}

function text(rule: TextRule) {
  const { pattern, message } = allowed(rule);
  return z
    .string({ error: (issue) => (issue.input === undefined ? REQUIRED : NOT_A_STRING) })
    .refine((value) => value.trim() !== "", "must not be empty")
    .refine((value) => hasAtMost(value, rule.most), `must have at most ${rule.most} characters`)
    .refine((value) => pattern.test(value), message);
}

/** A text with at least one character that is not white space. */
export function requiredText(rule: TextRule) {
  return text(rule).openapi({ minLength: 1, maxLength: rule.most });
}

/** The same, or null, which is what leaving it out means. */
export function optionalText(rule: TextRule) {
  return text(rule).nullable().default(null).openapi({ minLength: 1, maxLength: rule.most });
}
