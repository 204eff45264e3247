import { invalidRequest, resourceMissing } from "./errors.js";
import { listOf, type Params } from "./form.js";

// Limits of docs.stripe.com/api/metadata and of the parameters' own descriptions.
const MOST_METADATA_KEYS = 50;
const MOST_METADATA_KEY_LENGTH = 40;
const MOST_METADATA_VALUE_LENGTH = 500;
const MOST_TEXT_LENGTH = 1000;
const MOST_SUFFIX_LENGTH = 22;

/** Refuses what the call does not know, as Stripe does: nothing is ignored. Throws 400 `parameter_unknown`. */
export function refuseUnknown(params: Params, known: ReadonlySet<string>): void {
  const unknown = Object.keys(params).filter((name) => !known.has(name));
  if (unknown.length === 0) return;
  const plural = unknown.length > 1 ? "parameters" : "parameter";
  throw invalidRequest(`Received unknown ${plural}: ${unknown.join(", ")}`, "parameter_unknown", unknown[0]);
}

export function required(params: Params, name: string): string {
  const value = textOf(params, name);
  if (value === null) throw invalidRequest(`Missing required param: ${name}.`, "parameter_missing", name);
  return value;
}

/** The text of a parameter; null where it is absent or empty (an empty value unsets). Throws 400 for a map. */
export function textOf(params: Params, name: string): string | null {
  const value = params[name];
  if (value === undefined || value === "") return null;
  if (typeof value !== "string")
    throw invalidRequest(`Invalid string: ${JSON.stringify(value)}`, undefined, name);
  if (value.length > MOST_TEXT_LENGTH && name !== "return_url") {
    throw invalidRequest(
      `Invalid string: ${value.slice(0, 10)}...; must be at most ${MOST_TEXT_LENGTH} characters`,
      undefined,
      name,
    );
  }
  return value;
}

export function booleanOf(params: Params, name: string): boolean {
  const value = textOf(params, name);
  if (value === null || value === "false") return false;
  if (value === "true") return true;
  throw invalidRequest(`Invalid boolean: ${value}`, undefined, name);
}

export function enumOf<T extends string>(params: Params, name: string, allowed: readonly T[]): T | null {
  const value = textOf(params, name);
  if (value === null) return null;
  const found = allowed.find((each) => each === value);
  if (found === undefined) {
    throw invalidRequest(`Invalid ${name}: must be one of ${allowed.join(", ")}`, undefined, name);
  }
  return found;
}

/** Null where the call names no metadata. An empty value means: remove this key. Throws 400. */
export function metadataOf(params: Params): Record<string, string> | null {
  const given = params["metadata"];
  if (given === undefined) return null;
  if (typeof given === "string") {
    if (given === "") return {};
    throw invalidRequest(`Invalid object`, undefined, "metadata");
  }
  const metadata: Record<string, string> = {};
  const entries = Object.entries(given);
  if (entries.length > MOST_METADATA_KEYS) {
    throw invalidRequest(`You can have up to ${MOST_METADATA_KEYS} metadata keys.`, undefined, "metadata");
  }
  for (const [key, value] of entries) {
    if (typeof value !== "string")
      throw invalidRequest("Metadata values must be strings.", undefined, `metadata[${key}]`);
    if (key.length > MOST_METADATA_KEY_LENGTH) {
      throw invalidRequest(
        `Metadata keys must be at most ${MOST_METADATA_KEY_LENGTH} characters long.`,
        undefined,
        `metadata[${key}]`,
      );
    }
    if (value.length > MOST_METADATA_VALUE_LENGTH) {
      throw invalidRequest(
        `Metadata values must be at most ${MOST_METADATA_VALUE_LENGTH} characters long.`,
        undefined,
        `metadata[${key}]`,
      );
    }
    Object.defineProperty(metadata, key, { value, enumerable: true, configurable: true, writable: true });
  }
  return metadata;
}

export function mergedMetadata(
  old: Record<string, string>,
  change: Record<string, string>,
): Record<string, string> {
  const merged = Object.entries({ ...old, ...change }).filter(([, value]) => value !== "");
  if (merged.length > MOST_METADATA_KEYS) {
    throw invalidRequest(`You can have up to ${MOST_METADATA_KEYS} metadata keys.`, undefined, "metadata");
  }
  return Object.fromEntries(merged);
}

/** A customer id. The sandbox keeps no customers: it takes every id of the right shape. Throws 400. */
export function customerOf(params: Params): string | null {
  const id = textOf(params, "customer");
  if (id !== null && !/^cus_[A-Za-z0-9]+$/.test(id)) throw resourceMissing(400, "customer", id, "customer");
  return id;
}

export function descriptorSuffixOf(params: Params): string | null {
  const suffix = textOf(params, "statement_descriptor_suffix");
  if (suffix === null) return null;
  if (suffix.length > MOST_SUFFIX_LENGTH || /[<>\\'"*]/.test(suffix)) {
    throw invalidRequest(
      `The statement descriptor suffix must be at most ${MOST_SUFFIX_LENGTH} characters, without < > \\ ' " *.`,
      undefined,
      "statement_descriptor_suffix",
    );
  }
  return suffix;
}

/** Plain values of a list parameter. Throws 400 where it is no list. */
export function namesOf(params: Params, name: string): string[] {
  const given = params[name];
  if (given === undefined || given === "") return [];
  const list = listOf(given);
  if (list === null || !list.every((each) => typeof each === "string")) {
    throw invalidRequest(`Invalid array`, undefined, name);
  }
  return list;
}

export const PAGE_PARAMETERS = ["limit", "starting_after", "ending_before", "expand"] as const;

export function limitOf(params: Params): number {
  const text = textOf(params, "limit");
  if (text === null) return 10;
  const limit = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(limit >= 1 && limit <= 100)) {
    throw invalidRequest("Limit must be between 1 and 100.", "parameter_invalid_integer", "limit");
  }
  return limit;
}
