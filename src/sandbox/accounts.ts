import { createHash } from "node:crypto";
import { StripeFailure } from "./errors.js";

/** Whose key it is. Objects and idempotency keys live in one realm: an account in one mode. */
export interface Caller {
  readonly account: string;
  readonly livemode: boolean;
  /** A publishable key: it may only confirm and read an object whose client secret it shows. */
  readonly publishable: boolean;
  /** `acct_…/test` or `acct_…/live`. */
  readonly realm: string;
}

const KEY_SHAPE = /^(sk|rk|pk)_(test|live)_([A-Za-z0-9_]+)$/;

/**
 * Which account a key belongs to. Unless assigned, it follows from the part after the mode, so `sk_test_X`, `rk_test_X`,
 * `pk_test_X` and `sk_live_X` are keys of one account.
 */
export class Accounts {
  readonly #callers = new Map<string, Caller>();
  readonly #assigned = new Map<string, string>();
  readonly #revoked = new Set<string>();

  /** Digests, not keys, are remembered: the journal holds no credential. */
  static digest(key: string): string {
    return createHash("sha256").update(key).digest("hex");
  }

  assign(digest: string, account: string): void {
    this.#assigned.set(digest, account);
    this.#callers.clear();
  }

  revoke(digest: string): void {
    this.#revoked.add(digest);
    this.#callers.clear();
  }

  assignments(): [string, string][] {
    return [...this.#assigned];
  }

  revocations(): string[] {
    return [...this.#revoked];
  }

  clear(): void {
    this.#assigned.clear();
    this.#revoked.clear();
    this.#callers.clear();
  }

  /** The caller of an `Authorization` header, Bearer or Basic. Throws 401. */
  authenticate(header: string | undefined): Caller {
    if (header === undefined || header === "") throw missingKey();
    const known = this.#callers.get(header);
    if (known !== undefined) return known;
    const caller = this.callerOf(keyOf(header));
    this.#callers.set(header, caller);
    return caller;
  }

  callerOf(key: string): Caller {
    const parts = KEY_SHAPE.exec(key);
    if (parts === null) throw unauthorized(`Invalid API Key provided: ${masked(key)}`);
    const digest = Accounts.digest(key);
    if (this.#revoked.has(digest))
      throw unauthorized(`Expired API Key provided: ${masked(key)}`, "api_key_expired");
    const [, kind, mode, rest] = parts as unknown as [string, string, string, string];
    const account = this.#assigned.get(digest) ?? `acct_1${Accounts.digest(rest).slice(0, 15)}`;
    return { account, livemode: mode === "live", publishable: kind === "pk", realm: `${account}/${mode}` };
  }
}

function keyOf(header: string): string {
  const space = header.indexOf(" ");
  const scheme = header.slice(0, space).toLowerCase();
  const rest = header.slice(space + 1).trim();
  if (scheme === "bearer") return rest;
  if (scheme === "basic") return Buffer.from(rest, "base64").toString("utf8").split(":")[0] ?? "";
  throw missingKey();
}

function masked(key: string): string {
  return key.length <= 12
    ? "*".repeat(key.length)
    : `${key.slice(0, 8)}${"*".repeat(key.length - 12)}${key.slice(-4)}`;
}

function missingKey(): StripeFailure {
  return unauthorized(
    "You did not provide an API key. You need to provide your API key in the Authorization header, using Bearer " +
      "auth (e.g. 'Authorization: Bearer YOUR_SECRET_KEY').",
  );
}

function unauthorized(message: string, code?: string): StripeFailure {
  return new StripeFailure(401, {
    type: "invalid_request_error",
    message,
    ...(code === undefined ? {} : { code }),
  });
}
