import { z } from "zod";

/** The forms that settings take. A blank value is as good as none. */

export const blankIsUnset = (value: unknown) =>
  typeof value === "string" && value.trim() === "" ? undefined : value;
export const whole = (least: number, most: number) =>
  z.preprocess(
    blankIsUnset,
    z
      .string()
      .regex(/^\d{1,15}$/, "must be a whole number")
      .transform(Number)
      .refine((n) => n >= least && n <= most, `must lie between ${least} and ${most}`)
      .optional(),
  );
export const text = z.preprocess(blankIsUnset, z.string().optional());
export const flag = z.preprocess(
  blankIsUnset,
  z
    .enum(["true", "false"], "must be true or false")
    .transform((value) => value === "true")
    .optional(),
);
/** What Node's timers take: a longer one would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
export const duration = (least = 1) => whole(least, LONGEST_TIMER_MS);
export const span = () => whole(1, 10 ** 12);
export const url = (schemes: readonly string[]) =>
  z.preprocess(
    blankIsUnset,
    z
      .string()
      .refine(
        (value) => URL.canParse(value) && schemes.includes(new URL(value).protocol),
        `must be a URL (${schemes.join(", ")})`,
      )
      .optional(),
  );
export function isBareOrigin(value: string): boolean {
  if (!URL.canParse(value)) return false;
  const { protocol, origin } = new URL(value);
  return (
    (protocol === "http:" || protocol === "https:") &&
    value.replace(/\/$/, "").toLowerCase() === origin.toLowerCase()
  );
}
/** Hours, fractions allowed. */
export const hours = () =>
  z.preprocess(
    blankIsUnset,
    z
      .string()
      .regex(/^\d{1,6}(\.\d{1,20})?$/, "must be a number of hours")
      .transform(Number)
      .refine((value) => value > 0, "must be more than 0")
      .optional(),
  );
/** A comma-separated list; blanks around and between its members are left out. */
export const list = () =>
  z.preprocess(
    blankIsUnset,
    z
      .string()
      .transform((value) =>
        value
          .split(",")
          .map((one) => one.trim())
          .filter((one) => one !== ""),
      )
      .optional(),
  );
/** A comma-separated list of durations in milliseconds. */
export const durations = () =>
  z.preprocess(
    blankIsUnset,
    z
      .string()
      .regex(/^\s*\d{1,10}(\s*,\s*\d{1,10})*\s*$/, "must be a comma-separated list of milliseconds")
      .transform((value) => value.split(",").map(Number))
      .refine(
        (values) => values.every((ms) => ms <= LONGEST_TIMER_MS),
        `must each be at most ${LONGEST_TIMER_MS}`,
      )
      .optional(),
  );
