import { InvalidArgumentError } from "commander";

/** RFC 3339, or a day in UTC: without an offset a time would be read by this machine's own clock. */
const TIME = /^\d{4}-\d{2}-\d{2}([Tt]\d{2}:\d{2}(:\d{2}(\.\d+)?)?([Zz]|[+-]\d{2}:\d{2}))?$/;

/** Throws InvalidArgumentError, which is wrong usage. */
export function readTime(value: string): Date {
  const at = new Date(value);
  // A day that no month has would be read as one of the next.
  const day = new Date(`${value.slice(0, 10)}T00:00:00Z`);
  const isDay = !Number.isNaN(day.getTime()) && day.toISOString().startsWith(value.slice(0, 10));
  const isTime = TIME.test(value) && isDay && !Number.isNaN(at.getTime());
  if (!isTime) throw new InvalidArgumentError("must be a time with its offset, such as 2026-11-29T00:00:00Z");
  return at;
}
