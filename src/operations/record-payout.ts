import { postingsOf } from "../domain/ledger.js";
import type { PayoutMovement } from "../domain/provider.js";
import type { AttemptReference } from "../domain/provider-event.js";
import { findChargesOfObjects } from "../store/attempt-references.js";
import { withDatabase } from "../store/db.js";
import { insertEntries } from "../store/ledger.js";
import type { Deps } from "./deps.js";
import { type Applied, askProvider, unanswered } from "./provider-event-steps.js";

/** Look-ups a statement: a payout may have thousands of movements. */
const LOOKED_UP_AT_ONCE = 500;

/**
 * Posts what a payout brought to the bank, payment by payment, each in a transaction of its own: no lock spans
 * tenants. Each posting is unique by its movement, so a try that ends half-way is simply made again.
 */
export async function recordPayout(deps: Deps, payoutId: string): Promise<Applied> {
  const answer = await askProvider(deps, "get_payout", () => deps.provider.getPayout(payoutId));
  if (answer.type !== "found") return unanswered(answer);
  let posted = 0;
  for (let from = 0; from < answer.movements.length; from += LOOKED_UP_AT_ONCE) {
    posted += await postMovements(deps, answer.movements.slice(from, from + LOOKED_UP_AT_ONCE));
  }
  await deps.probe("before_payout_ended");
  return posted === 0 ? { type: "not_ours" } : { type: "nothing", outcome: `paid_out: ${posted} movements` };
}

/** How many of these are of charges of ours; they are posted now, or were before. */
async function postMovements(deps: Deps, movements: readonly PayoutMovement[]): Promise<number> {
  const objectIds = new Set(movements.flatMap(({ chargeId }) => (chargeId === null ? [] : [chargeId])));
  const charges = await withDatabase(() =>
    findChargesOfObjects(deps.db.sql, deps.provider.name, [...objectIds]),
  );
  const ours = charges.filter((charge) => charge.livemode === deps.provider.livemode);
  let count = 0;
  for (const charge of ours) {
    const its = movements.filter(({ chargeId }) => chargeId === charge.objectId);
    await post(deps, charge, its);
    count += its.length;
  }
  return count;
}

async function post(
  deps: Deps,
  charge: AttemptReference,
  movements: readonly PayoutMovement[],
): Promise<void> {
  const entries = movements.flatMap(({ transactionId, amount, currency }) =>
    postingsOf({ type: "paid_out", transactionId, amount, currency }),
  );
  await withDatabase(() => insertEntries(deps.db.sql, charge.tenantId, charge.paymentId, entries));
}
