import { postingsOf } from "../domain/ledger.js";
import type { PayoutMovement } from "../domain/provider.js";
import type { AttemptReference } from "../domain/provider-event.js";
import { findChargesOfObjects } from "../store/attempt-references.js";
import { withDatabase } from "../store/db.js";
import { insertEntries } from "../store/ledger.js";
import type { ClaimedEvent } from "../store/provider-events.js";
import type { Deps } from "./deps.js";
import { type Applied, askProvider, unanswered } from "./provider-event-steps.js";

/** Look-ups a statement: a payout may have thousands of movements. */
const LOOKED_UP_AT_ONCE = 500;

/** A claim of the event is worked on for this part of its lease, so that the last page still fits into it. */
const PART_OF_LEASE = 4;
/** How far an earlier claim of the event has come. */
const PROGRESS = /^paid_out: (\d+) movements, up to (\S+)$/;

/**
 * Posts what a payout brought to the bank, page by page and payment by payment, each in a transaction of its own: no lock
 * spans tenants. Each posting is unique by its movement, so a page that ends half-way is simply read again; a payout of
 * more pages than fit into one claim is gone on with by the next.
 */
export async function recordPayout(deps: Deps, event: ClaimedEvent, payoutId: string): Promise<Applied> {
  const endsAtMs = deps.clock.monotonicMs() + deps.settings.attemptLeaseMs / PART_OF_LEASE;
  let { posted, after } = progressOf(event);
  do {
    const answer = await askProvider(deps, "get_payout", () => deps.provider.getPayout(payoutId, after));
    if (answer.type !== "found") return unanswered(answer);
    for (let from = 0; from < answer.movements.length; from += LOOKED_UP_AT_ONCE) {
      posted += await postMovements(deps, answer.movements.slice(from, from + LOOKED_UP_AT_ONCE));
    }
    after = answer.next ?? null;
  } while (after !== null && deps.clock.monotonicMs() < endsAtMs);
  if (after !== null) return { type: "goes_on", progress: `paid_out: ${posted} movements, up to ${after}` };
  await deps.probe("before_payout_ended");
  return posted === 0 ? { type: "not_ours" } : { type: "nothing", outcome: `paid_out: ${posted} movements` };
}

/** From its beginning where the provider did not answer in between: what was posted is not posted twice. */
function progressOf({ outcome }: ClaimedEvent): { posted: number; after: string | null } {
  const [, posted = "0", after = null] = PROGRESS.exec(outcome ?? "") ?? [];
  return { posted: Number(posted), after };
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
