import type { Call } from "./call.js";
import { invalidRequest, resourceMissing } from "./errors.js";
import type { Ordered } from "./object-table.js";
import { limitOf, textOf } from "./parameters.js";
import { createdWindowOf, type ListBody } from "./payment-intent-lists.js";

export interface PageOptions<T> {
  /** What an unknown cursor is called in the error. */
  readonly kind: string;
  readonly url: string;
  readonly matches?: (object: T) => boolean;
}

interface Listed {
  readonly id: string;
  readonly created: number;
}

/** Few objects, in whatever order of `created`. */
export function listed<T extends Listed>(oldestFirst: readonly T[]): Ordered<T> {
  return {
    size: oldestFirst.length,
    at: (place) => oldestFirst[place],
    placeOf: (id) => oldestFirst.findIndex((object) => object.id === id),
    placesIn: () => [0, oldestFirst.length],
  };
}

/**
 * One page of a list, newest first, by `created`, `limit`, `starting_after` and `ending_before`. Throws 400 for a cursor
 * that names no object of the account.
 */
export function pageOf<T extends Listed>(call: Call, list: Ordered<T>, options: PageOptions<T>): ListBody<T> {
  const limit = limitOf(call.params);
  const window = createdWindowOf(call.params);
  const after = textOf(call.params, "starting_after");
  const before = textOf(call.params, "ending_before");
  if (after !== null && before !== null) {
    throw invalidRequest("You may only specify one of these parameters: ending_before, starting_after.");
  }
  const cursor = after ?? before;
  const place = cursor === null ? null : list.placeOf(cursor);
  if (cursor !== null && place === -1) {
    throw resourceMissing(400, options.kind, cursor, after === null ? "ending_before" : "starting_after");
  }
  const [first, end] = list.placesIn(window);
  const isWanted = (object: T | undefined): object is T =>
    object !== undefined &&
    (window.from === null || object.created >= window.from) &&
    (window.to === null || object.created <= window.to) &&
    (options.matches?.(object) ?? true);
  // One more than the page has tells whether there are more; nothing behind it is looked at.
  const found: T[] = [];
  const consider = (at: number): void => {
    const object = list.at(at);
    if (isWanted(object)) found.push(object);
  };
  if (before === null) {
    for (let at = Math.min(place ?? end, end) - 1; at >= first && found.length <= limit; at -= 1)
      consider(at);
  } else {
    for (let at = Math.max((place ?? -1) + 1, first); at < end && found.length <= limit; at += 1)
      consider(at);
  }
  const shown = found.slice(0, limit);
  return {
    object: "list",
    data: before === null ? shown : shown.reverse(),
    has_more: found.length > limit,
    url: options.url,
  };
}
