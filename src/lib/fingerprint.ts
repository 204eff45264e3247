import { hash } from "node:crypto";
import { canonicalJson } from "./canonical-json.js";

/** Stands in the fingerprint and in the digest: a later way to canonicalise gets another tag and never meets this one's rows. */
const VERSION = "v1";

/**
 * What makes two requests under one key the same: `v1:` and 64 hex digits of SHA-256 over the version tag, the
 * operation (`payments.create`), the ids in the path, in order, and the validated input with its defaults applied.
 */
export function fingerprint(operation: string, pathIds: readonly string[], input: unknown): string {
  return `${VERSION}:${hash("sha256", canonicalJson([VERSION, operation, pathIds, input]), "hex")}`;
}
