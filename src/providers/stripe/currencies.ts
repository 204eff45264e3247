/**
 * Stripe's amounts and ours. Ours are integers in the ISO 4217 minor unit; Stripe's are integers in a unit of its own,
 * which differs from ISO 4217 for ISK, UGX and MGA. Source of every rule: docs.stripe.com/currencies.
 */

// #presentment-currencies, for every account country together (the five with three decimals are listed for accounts in
// the United Arab Emirates). One that this account's country may not use is refused by Stripe itself.
const PRESENTMENT_CURRENCIES: ReadonlySet<string> = new Set(
  (
    "usd aed afn all amd ang aoa ars aud awg azn bam bbd bdt bgn bhd bif bmd bnd bob brl bsd bwp byn bzd cad cdf chf " +
    "clp cny cop crc cve czk djf dkk dop dzd egp etb eur fjd fkp gbp gel gip gmd gnf gtq gyd hkd hnl htg huf idr ils " +
    "inr isk jmd jod jpy kes kgs khr kmf krw kwd kyd kzt lak lbp lkr lrd lsl mad mdl mga mkd mmk mnt mop mur mvr mwk " +
    "mxn myr mzn nad ngn nio nok npr nzd omr pab pen pgk php pkr pln pyg qar ron rsd rub rwf sar sbd scr sek sgd shp " +
    "sle sos srd szl thb tjs tnd top try ttd twd tzs uah ugx uyu uzs vnd vuv wst xaf xcd xcg xof xpf yer zar zmw"
  ).split(" "),
);

// #special-cases: without decimals in ISO 4217, yet written with two at Stripe, which must be 00. HUF and TWD have such
// a rule for payouts alone; a charge in them keeps its two decimals.
const TIMES_HUNDRED: ReadonlySet<string> = new Set(["isk", "ugx"]);

// #zero-decimal: whole ariary at Stripe, two decimals in ISO 4217. The other currencies of that list have none in
// either (UGX, which is on it too, is a special case).
const WHOLE_UNITS_ONLY: ReadonlySet<string> = new Set(["mga"]);

// Three decimals, the last of which must be 0: the card networks carry two (#three-decimal).
const LAST_DIGIT_ZERO: ReadonlySet<string> = new Set(["bhd", "jod", "kwd", "omr", "tnd"]);

const HUNDRED = 100;

/**
 * The largest `amount` of a card payment: 12 digits (#maximum-charge-amounts, "Card payments"). The SDK's typings still
 * speak of 8, which that page keeps for payment methods other than cards. A network's lower limit is Stripe's 400.
 */
export const LARGEST_STRIPE_AMOUNT = 999_999_999_999;

export type StripeAmount =
  | { readonly ok: true; readonly amount: number }
  | { readonly ok: false; readonly pointer: "/amount" | "/currency"; readonly detail: string };

/**
 * Our amount in Stripe's unit, or why Stripe cannot carry exactly this one. Minimums are Stripe's to check: they depend
 * on the account's settlement currency and an exchange rate.
 * @param amount integer ≥ 1, ISO 4217 minor unit
 * @param currency ISO 4217, lower case
 */
export function toStripeAmount(amount: number, currency: string): StripeAmount {
  const code = currency.toUpperCase();
  if (!PRESENTMENT_CURRENCIES.has(currency))
    return refused("/currency", `Stripe does not take payments in ${code}.`);
  if (LAST_DIGIT_ZERO.has(currency) && amount % 10 !== 0) {
    return refused("/amount", `Stripe takes ${code} with two decimals only: the last digit must be 0.`);
  }
  if (WHOLE_UNITS_ONLY.has(currency) && amount % HUNDRED !== 0) {
    return refused("/amount", `Stripe takes whole ${code} only: the last two digits must be 00.`);
  }
  const stripeAmount = TIMES_HUNDRED.has(currency)
    ? amount * HUNDRED
    : WHOLE_UNITS_ONLY.has(currency)
      ? amount / HUNDRED
      : amount;
  if (stripeAmount > LARGEST_STRIPE_AMOUNT) {
    return refused(
      "/amount",
      `Stripe takes at most ${toMinorUnits(LARGEST_STRIPE_AMOUNT, currency)} in ${code}.`,
    );
  }
  return { ok: true, amount: stripeAmount };
}

/** Stripe's amount in our minor unit; null where it is no whole number of them or the currency is none of Stripe's. */
export function fromStripeAmount(stripeAmount: number, currency: string): number | null {
  if (!PRESENTMENT_CURRENCIES.has(currency)) return null;
  if (TIMES_HUNDRED.has(currency) && stripeAmount % HUNDRED !== 0) return null;
  return toMinorUnits(stripeAmount, currency);
}

function toMinorUnits(stripeAmount: number, currency: string): number {
  if (TIMES_HUNDRED.has(currency)) return Math.floor(stripeAmount / HUNDRED);
  return WHOLE_UNITS_ONLY.has(currency) ? stripeAmount * HUNDRED : stripeAmount;
}

function refused(pointer: "/amount" | "/currency", detail: string): StripeAmount {
  return { ok: false, pointer, detail };
}
