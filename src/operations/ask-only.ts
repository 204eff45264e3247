import type { Evidence, PaymentProvider } from "../domain/provider.js";

/** Nothing went out. */
const NO_EVIDENCE: Evidence = { httpStatus: null, code: "recovering", requestId: null };

/** Each changes something at the provider; everything else asks. */
const SENDS = [
  "createCharge",
  "confirmCharge",
  "cancelCharge",
  "captureCharge",
  "voidCharge",
  "createRefund",
] as const satisfies readonly (keyof PaymentProvider)[];

/**
 * The provider, of which only questions are asked while `isRecovering`: a send comes back as refused before execution,
 * which is what it is, and its attempt waits. Looked at before every send, so that a send about to start is kept back too.
 */
export function askOnlyWhile(
  isRecovering: () => boolean,
  provider: PaymentProvider,
  retryAfterMs: number,
): PaymentProvider {
  const keptBack = {
    type: "not_performed",
    reason: "recovering",
    retryAfterMs,
    evidence: NO_EVIDENCE,
  } as const;
  const sends = new Set<string | symbol>(SENDS);
  return new Proxy(provider, {
    get: (target, name) => {
      if (sends.has(name) && isRecovering()) return () => Promise.resolve(keptBack);
      const own: unknown = Reflect.get(target, name, target);
      return typeof own === "function" ? (own.bind(target) as unknown) : own;
    },
  });
}
