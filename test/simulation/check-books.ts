import { type EndState, type PaymentRow, sumOf } from "./end-state.js";
import { feeOf, type Intent } from "./provider-objects.js";
import type { World } from "./world.js";

type Balances = Readonly<Record<string, number>>;

/** Each payment's accounts against what the provider did with its object, to the cent. */
export function bookFaults(rows: EndState, world: World): string[] {
  return rows.payments.flatMap((payment) => {
    // While a person must decide about a charge, the provider's side is not adopted yet.
    const charges = rows.attempts.filter((row) => row.payment_id === payment.id && row.kind !== "refund");
    if (rows.reviews.some((review) => charges.some((row) => row.id === review.attempt_id))) return [];
    const books = shown(balancesOf(payment, rows));
    const attempt = rows.attempts.find((row) => row.id === payment.attempt_id);
    const intent = world.model.intents.get(attempt?.provider_payment_id ?? "") ?? null;
    const wanted = shown(intent === null ? {} : balancesAtProvider(intent, world));
    return books === wanted ? [] : [`the books of ${payment.id} say ${books}, the provider ${wanted}`];
  });
}

/** Debits less credits. */
function balancesOf(payment: PaymentRow, rows: EndState): Balances {
  const balances: Record<string, number> = {};
  for (const { payment_id, debit_account: debit, credit_account: credit, amount } of rows.entries) {
    if (payment_id !== payment.id) continue;
    balances[debit] = (balances[debit] ?? 0) + Number(amount);
    balances[credit] = (balances[credit] ?? 0) - Number(amount);
  }
  return balances;
}

function balancesAtProvider(intent: Intent, { model }: World): Balances {
  const { captured } = intent;
  const fee = captured === 0 ? 0 : feeOf(captured);
  const refunded = sumOf(model.refundsOf(intent).filter((refund) => refund.status === "succeeded"));
  const disputes = [...model.disputes.values()].filter((dispute) => dispute.intentId === intent.id);
  const movements = disputes.flatMap((dispute) => dispute.movements);
  const moved = sumOf(movements);
  const disputeFees = movements.reduce((sum, movement) => sum + movement.fee, 0);
  const lost = sumOf(disputes.filter((dispute) => dispute.status === "lost"));
  const paidOut = sumOf(
    [...model.payouts.values()].flatMap((payout) =>
      payout.movements.filter((one) => one.intentId === intent.id),
    ),
  );
  return {
    authorized: intent.capturable,
    authorized_contra: -intent.capturable,
    provider_balance: captured - fee - refunded + moved - disputeFees - paidOut,
    provider_fees: fee + disputeFees,
    sales: -captured,
    refunds: refunded,
    disputed: -moved - lost,
    dispute_losses: lost,
    bank: paidOut,
  };
}

function shown(balances: Balances): string {
  const kept = Object.entries(balances).filter(([, balance]) => balance !== 0);
  return kept
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([account, balance]) => `${account} ${String(balance)}`)
    .join(", ");
}
