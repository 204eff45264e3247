import { LEDGER_ACCOUNTS, type LedgerAccount, type LedgerEntry } from "../../../src/domain/ledger.js";

/** Debits less credits of each account that is not even, in one currency. */
export function balancesOf(
  entries: readonly LedgerEntry[],
  currency: string,
): Partial<Record<LedgerAccount, number>> {
  const sum = (account: LedgerAccount) =>
    entries
      .filter((entry) => entry.currency === currency)
      .reduce(
        (total, { debitAccount, creditAccount, amount }) =>
          total + (debitAccount === account ? amount : 0) - (creditAccount === account ? amount : 0),
        0,
      );
  const sums = LEDGER_ACCOUNTS.map((account) => [account, sum(account)] as const);
  return Object.fromEntries(sums.filter(([, balance]) => balance !== 0));
}
