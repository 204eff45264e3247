import { ATTEMPT_METADATA_KEY, TENANT_METADATA_KEY } from "./outcome.js";

/** The form of the stored text. A change of what a member means needs another number, and this one read as before. */
export const ADAPTER_VERSION = 1;

/** In every stored text, beside the parameters themselves. */
export interface StoredHead {
  readonly adapter_version: typeof ADAPTER_VERSION;
  /** `Stripe-Version` of every send, also after a deploy that moves the adapter's own. */
  readonly api_version: string;
}

export interface Reference {
  readonly attemptId: string;
  readonly tenantId: string;
}

/** So that the answer itself tells the fee and until when an authorisation holds (docs.stripe.com/expand). */
export const CHARGE_EXPANSIONS = ["latest_charge.balance_transaction"];

/** All of ours that an object at Stripe carries: two ids and nothing else. */
export function marksOf({ attemptId, tenantId }: Reference): Record<string, string> {
  return { [ATTEMPT_METADATA_KEY]: attemptId, [TENANT_METADATA_KEY]: tenantId };
}

export function given<Name extends string>(
  name: Name,
  value: string | null,
): { readonly [Key in Name]?: string } {
  return value === null ? {} : ({ [name]: value } as { readonly [Key in Name]?: string });
}

/** Reads a stored text, so that what was stored is sent verbatim. Throws on one that this adapter did not write. */
export function readStored<Members extends object>(
  stored: string,
  names: readonly (keyof Members & string)[],
): StoredHead & Members {
  const text = JSON.parse(stored) as Partial<StoredHead & Members> | null;
  const isOurs =
    text !== null &&
    text.adapter_version === ADAPTER_VERSION &&
    typeof text.api_version === "string" &&
    names.every((name) => typeof text[name] === "object" && text[name] !== null);
  if (!isOurs) throw new Error("the stored parameters are not of this adapter's form");
  return text as StoredHead & Members;
}
