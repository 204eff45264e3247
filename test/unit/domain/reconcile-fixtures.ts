import type { Difference } from "../../../src/domain/finding.js";
import type { OurCharge } from "../../../src/domain/reconcile.js";

const NOON = new Date("2026-11-29T12:00:00Z");
export const before = (minutes: number) => new Date(NOON.getTime() - minutes * 60_000);
export const SETTLED = before(5);

export const REFERENCE = {
  tenantId: "ten_1",
  id: "att_1",
  paymentId: "pay_1",
  kind: "charge",
  livemode: false,
  objectId: "pi_1",
} as const;
export const CHARGE: OurCharge = {
  ...REFERENCE,
  ended: true,
  inWork: false,
  isDue: false,
  status: "succeeded",
  amount: 4_200,
  currency: "usd",
  amountCaptured: 4_200,
  amountCapturable: 0,
  hasOpenEffect: false,
  changedAt: before(60),
};
/** As short words: `kind repair`. */
export function words(found: readonly Difference[]): string[] {
  return found.map(({ kind, repair }) => `${kind} ${repair.type}`);
}
