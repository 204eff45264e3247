import { z } from "@hono/zod-openapi";
import { hasAtMost } from "./text-schema.js";

const MOST_PAIRS = 50;
const LONGEST_NAME = 40;
const LONGEST_VALUE = 500;
const SHAPE_RULE = "must be an object of strings";

type Pairs = Readonly<Record<string, string>>;

/**
 * Up to 50 pairs; names of 1 to 40, values of 0 to 500 characters (code points); any character but NUL. Written by hand
 * and not as z.record, which drops a member named `__proto__` without a word. That name is refused: consumers that copy
 * objects name by name would set a prototype with it.
 */
export const metadata = z
  .custom<Pairs>((value) => typeof value === "object" && value !== null && !Array.isArray(value), SHAPE_RULE)
  .superRefine((pairs, context) => {
    const names = Object.keys(pairs);
    const refuse = (path: string[], message: string) => context.addIssue({ code: "custom", path, message });
    if (names.length > MOST_PAIRS) refuse([], `must have at most ${MOST_PAIRS} pairs`);
    for (const name of names) {
      const value: unknown = pairs[name];
      if (name === "" || !hasAtMost(name, LONGEST_NAME)) {
        refuse([name], `must have a name of 1 to ${LONGEST_NAME} characters`);
      }
      if (name === "__proto__") refuse([name], "must not have this name");
      if (typeof value !== "string") refuse([name], "must be a string");
      else if (!hasAtMost(value, LONGEST_VALUE))
        refuse([name], `must have at most ${LONGEST_VALUE} characters`);
    }
  })
  .default(() => ({}))
  .openapi({
    type: "object",
    additionalProperties: { type: "string", maxLength: LONGEST_VALUE },
    maxProperties: MOST_PAIRS,
    default: {},
    description: "Your own pairs, kept and shown as they are.",
    example: { cart: "17" },
  });
