/**
 * The active currencies of ISO 4217 with the digits of their minor unit. Kept by hand from list one (SIX, published
 * 2024-06-25) with what happened since: XCG for ANG (amendment 176, 2025-03-31), CUC gone (withdrawn), BGN gone (the
 * euro, 2026-01-01). Metals, XDR, XTS and the others without a minor unit are left out: nothing can be counted in them.
 */
const CODES_BY_MINOR_UNIT_DIGITS = {
  0: "bif clp djf gnf isk jpy kmf krw pyg rwf ugx uyi vnd vuv xaf xof xpf",
  2: `
    aed afn all amd aoa ars aud awg azn bam bbd bdt bmd bnd bob bov brl bsd btn bwp byn bzd cad cdf che chf chw cny
    cop cou crc cup cve czk dkk dop dzd egp ern etb eur fjd fkp gbp gel ghs gip gmd gtq gyd hkd hnl htg huf idr ils
    inr irr jmd kes kgs khr kpw kyd kzt lak lbp lkr lrd lsl mad mdl mga mkd mmk mnt mop mru mur mvr mwk mxn mxv myr
    mzn nad ngn nio nok npr nzd pab pen pgk php pkr pln qar ron rsd rub sar sbd scr sdg sek sgd shp sle sos srd ssp
    stn svc syp szl thb tjs tmt top try ttd twd tzs uah usd usn uyu uzs ved ves wst xcd xcg yer zar zmw zwg`,
  3: "bhd iqd jod kwd lyd omr tnd",
  4: "clf uyw",
};

const MINOR_UNIT_DIGITS: ReadonlyMap<string, number> = new Map(
  Object.entries(CODES_BY_MINOR_UNIT_DIGITS).flatMap(([digits, codes]) =>
    codes
      .trim()
      .split(/\s+/)
      .map((code): [string, number] => [code, Number(digits)]),
  ),
);

const THREE_LETTERS = /^[A-Za-z]{3}$/;

/** The code in lower case where it is an active ISO 4217 one in any case, else null. */
export function normalizeCurrency(code: string): string | null {
  // Checked before the case is changed: the Kelvin sign's lower case is an ASCII k.
  if (!THREE_LETTERS.test(code)) return null;
  const lower = code.toLowerCase();
  return MINOR_UNIT_DIGITS.has(lower) ? lower : null;
}

/** Digits of the minor unit by ISO 4217 (0, 2, 3 or 4); undefined for a code that is not an active one in lower case. */
export function minorUnitDigits(currency: string): number | undefined {
  return MINOR_UNIT_DIGITS.get(currency);
}
