import type { Call } from "./call.js";
import { invalidRequest, resourceMissing } from "./errors.js";
import { limitOf, textOf } from "./parameters.js";
import { createdWindowOf, type ListBody } from "./payment-intent-lists.js";

export interface PageOptions<T> {
  /** What an unknown cursor is called in the error. */
  readonly kind: string;
  readonly url: string;
  readonly matches?: (object: T) => boolean;
}

/**
 * One page of a list, newest first, by `created`, `limit`, `starting_after` and `ending_before`. Throws 400 for a cursor
 * that names no object of the account.
 */
export function pageOf<T extends { readonly id: string; readonly created: number }>(
  call: Call,
  oldestFirst: readonly T[],
  options: PageOptions<T>,
): ListBody<T> {
  const limit = limitOf(call.params);
  const window = createdWindowOf(call.params);
  const after = textOf(call.params, "starting_after");
  const before = textOf(call.params, "ending_before");
  if (after !== null && before !== null) {
    throw invalidRequest("You may only specify one of these parameters: ending_before, starting_after.");
  }
  const newestFirst = [...oldestFirst].reverse();
  const cursor = after ?? before;
  const place = cursor === null ? -1 : newestFirst.findIndex((object) => object.id === cursor);
  if (cursor !== null && place === -1) {
    throw resourceMissing(400, options.kind, cursor, after === null ? "ending_before" : "starting_after");
  }
  const candidates = (before === null ? newestFirst.slice(place + 1) : newestFirst.slice(0, place)).filter(
    (object) =>
      (window.from === null || object.created >= window.from) &&
      (window.to === null || object.created <= window.to) &&
      (options.matches?.(object) ?? true),
  );
  return {
    object: "list",
    data: before === null ? candidates.slice(0, limit) : candidates.slice(-limit),
    has_more: candidates.length > limit,
    url: options.url,
  };
}
