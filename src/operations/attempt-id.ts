import { createHmac } from "node:crypto";
import { MOST_RUNS } from "../domain/earlier-runs.js";

/** 128 bits: an accidental collision within a tenant is out of reach. */
const DIGEST_HEX_LENGTH = 32;

/** What the identity of a keyed request is made of. */
interface ClientKey {
  readonly tenantId: string;
  readonly operation: string;
  readonly key: string;
}

/**
 * The attempt id of a client key's n-th run: `att_` + the first 128 bits of HMAC-SHA-256 under the installation's
 * secret. The same client key so meets the same provider key even when our rows were lost with a backup.
 */
export function attemptIdOf(installationSecret: string, name: ClientKey, run: number): string {
  const parts = JSON.stringify([name.tenantId, name.operation, name.key, run]);
  const digest = createHmac("sha256", installationSecret).update(parts).digest("hex");
  return `att_${digest.slice(0, DIGEST_HEX_LENGTH)}`;
}

/** Of all runs that the key can have, in order: the first is that of run 1. */
export function attemptIdsOf(installationSecret: string, name: ClientKey): string[] {
  return Array.from({ length: MOST_RUNS }, (_, at) => attemptIdOf(installationSecret, name, at + 1));
}
