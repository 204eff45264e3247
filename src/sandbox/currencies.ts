import { invalidRequest } from "./errors.js";

// Presentment currencies (docs.stripe.com/currencies#presentment-currencies).
const SUPPORTED = new Set(
  (
    "usd aed afn all amd ang aoa ars aud awg azn bam bbd bdt bgn bhd bif bmd bnd bob brl bsd bwp byn bzd cad cdf chf clp " +
    "cny cop crc cve czk djf dkk dop dzd egp etb eur fjd fkp gbp gel gip gmd gnf gtq gyd hkd hnl htg huf idr ils inr isk " +
    "jmd jod jpy kes kgs khr kmf krw kwd kyd kzt lak lbp lkr lrd lsl mad mdl mga mkd mmk mnt mop mur mvr mwk mxn myr mzn " +
    "nad ngn nio nok npr nzd omr pab pen pgk php pkr pln pyg qar ron rsd rub rwf sar sbd scr sek sgd shp sle sos srd std " +
    "szl thb tjs tnd top try ttd twd tzs uah ugx usdc uyu uzs vnd vuv wst xaf xcd xcg xof xpf yer zar zmw"
  ).split(" "),
);

// In the unit of the API (docs.stripe.com/currencies#minimum-and-maximum-charge-amounts). A currency that is not
// named has the settlement currency's minimum after conversion; the sandbox converts nothing and takes 1.
const MINIMUM: Readonly<Record<string, number>> = {
  usd: 50,
  aed: 200,
  aud: 50,
  bgn: 100,
  brl: 50,
  cad: 50,
  chf: 50,
  czk: 1500,
  dkk: 250,
  eur: 50,
  gbp: 30,
  hkd: 400,
  huf: 17500,
  inr: 50,
  jpy: 50,
  mxn: 1000,
  myr: 200,
  nok: 300,
  nzd: 50,
  pln: 200,
  ron: 200,
  sek: 300,
  sgd: 50,
  thb: 1000,
};

const MAXIMUM = 99_999_999;

const ZERO_DECIMAL = new Set("bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf".split(" "));
/** The last digit must be 0 (docs.stripe.com/currencies#three-decimal). */
const THREE_DECIMAL = new Set("bhd jod kwd omr tnd".split(" "));
/**
 * Without decimals, yet written with two that must be 00 (docs.stripe.com/currencies#special-cases). HUF and TWD have
 * such a rule for payouts only: charges in them keep their decimals.
 */
const WHOLE_WITH_TWO_DECIMALS = new Set(["isk", "ugx"]);

/** The currency in lower case. Throws 400. */
export function checkedCurrency(text: string): string {
  const currency = text.toLowerCase();
  if (!SUPPORTED.has(currency)) {
    throw invalidRequest(
      `Invalid currency: ${text}. Stripe currently supports these currencies: ${[...SUPPORTED].join(", ")}`,
      undefined,
      "currency",
    );
  }
  return currency;
}

/** The amount as an integer in the API's unit of the currency. Throws 400. */
export function checkedAmount(text: string, currency: string): number {
  if (!/^-?\d+$/.test(text))
    throw invalidRequest(`Invalid integer: ${text}`, "parameter_invalid_integer", "amount");
  const amount = Number(text);
  if (amount < 1) {
    throw invalidRequest(
      "This value must be greater than or equal to 1.",
      "parameter_invalid_integer",
      "amount",
    );
  }
  const minimum = MINIMUM[currency] ?? 1;
  if (amount < minimum) {
    throw invalidRequest(`Amount must be at least ${shown(minimum, currency)}`, "amount_too_small", "amount");
  }
  if (amount > MAXIMUM) {
    throw invalidRequest(
      `Amount must be no more than ${shown(MAXIMUM, currency)}`,
      "amount_too_large",
      "amount",
    );
  }
  if (THREE_DECIMAL.has(currency) && amount % 10 !== 0) {
    throw invalidRequest(
      `Invalid amount: the last digit of an amount in ${currency} must be 0.`,
      "parameter_invalid_integer",
      "amount",
    );
  }
  if (WHOLE_WITH_TWO_DECIMALS.has(currency) && amount % 100 !== 0) {
    throw invalidRequest(
      `Invalid amount: an amount in ${currency} must be divisible by 100.`,
      "parameter_invalid_integer",
      "amount",
    );
  }
  return amount;
}

function shown(amount: number, currency: string): string {
  const value = decimal(amount, currency);
  return currency === "usd" ? `$${value} usd` : `${value} ${currency}`;
}

const SIGNS: Readonly<Record<string, string>> = { usd: "$", eur: "€", gbp: "£", jpy: "¥" };

/** The amount as messages about refunds show it: `$21.45`. */
export function shownMoney(amount: number, currency: string): string {
  const sign = SIGNS[currency];
  const value = decimal(amount, currency);
  return sign === undefined ? `${value} ${currency}` : `${sign}${value}`;
}

function decimal(amount: number, currency: string): string {
  const decimals = ZERO_DECIMAL.has(currency) ? 0 : THREE_DECIMAL.has(currency) ? 3 : 2;
  return (amount / 10 ** decimals).toFixed(decimals);
}
