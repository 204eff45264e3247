export const SCOPES = [
  "payments:read",
  "payments:write",
  "refunds:write",
  "webhooks:manage",
  "admin",
] as const;
export type Scope = (typeof SCOPES)[number];

/** What a key may do that was made without `--scopes`. */
export const DEFAULT_SCOPES: readonly Scope[] = SCOPES.filter((scope) => scope !== "admin");

export function isScope(value: string): value is Scope {
  return (SCOPES as readonly string[]).includes(value);
}
