/**
 * Finds texts that look like a primary account number (ISO/IEC 7812): 12 to 19 digits, bare, in groups divided by spaces or
 * dashes, or in the groups of a card divided by dots or slashes, with a network's prefix and length and a right Luhn digit.
 * Kept out on purpose, because ordinary references would be refused by chance: digits inside a word (hexadecimal ids),
 * UUIDs, and numbers after a `+` (phones).
 */

/** [prefix from, prefix to, allowed lengths], by network. Sources: the networks' published BIN tables. */
const NETWORKS: readonly (readonly [from: string, to: string, lengths: readonly number[]])[] = [
  ["4", "4", [13, 16, 19]], // Visa, Electron, Elo and Dankort on Visa ranges
  ["51", "55", [16]], // Mastercard
  ["2221", "2720", [16]], // Mastercard
  ["34", "34", [15]], // American Express
  ["37", "37", [15]], // American Express
  ["6011", "6011", [16, 17, 18, 19]], // Discover
  ["644", "659", [16, 17, 18, 19]], // Discover, RuPay, Elo, Verve
  ["62", "62", [16, 17, 18, 19]], // UnionPay
  ["81", "82", [16, 17, 18, 19]], // UnionPay, RuPay
  ["3528", "3589", [16, 17, 18, 19]], // JCB
  ["300", "305", [14, 16, 17, 18, 19]], // Diners Club
  ["3095", "3095", [14, 16, 17, 18, 19]], // Diners Club
  ["36", "36", [14, 15, 16, 17, 18, 19]], // Diners Club
  ["38", "39", [14, 16, 17, 18, 19]], // Diners Club
  ["5018", "5018", [12, 13, 14, 15, 16, 17, 18, 19]], // Maestro
  ["5019", "5019", [16]], // Dankort
  ["5020", "5020", [12, 13, 14, 15, 16, 17, 18, 19]], // Maestro
  ["5038", "5038", [12, 13, 14, 15, 16, 17, 18, 19]], // Maestro
  ["5893", "5893", [12, 13, 14, 15, 16, 17, 18, 19]], // Maestro
  ["6304", "6304", [12, 13, 14, 15, 16, 17, 18, 19]], // Maestro
  ["6759", "6763", [12, 13, 14, 15, 16, 17, 18, 19]], // Maestro
  ["506099", "506198", [16, 18, 19]], // Verve
  ["506699", "506778", [16]], // Elo
  ["508", "509", [16]], // RuPay, Elo
  ["60", "60", [16]], // RuPay, Hipercard
  ["637", "639", [16]], // InstaPayment
  ["2200", "2204", [16, 17, 18, 19]], // Mir
  ["9792", "9792", [16]], // Troy
];

const SHORTEST = 12;
const LONGEST = 19;
/** ITU-T E.164 section 6: at most 15 digits after the `+`. */
const LONGEST_PHONE = 15;
/** Below this, only bare digits count: grouped, they are phone numbers far more often than cards. */
const SHORTEST_GROUPED = 14;
const SPACES = " \\u00a0\\u2010-\\u2015-";
const ENOUGH_DIGITS = new RegExp(`(?:\\d[./${SPACES}]{0,3}){${SHORTEST}}`);
const RUN = runOf(`[${SPACES}]`);
/** Dots and slashes divide dates, amounts, versions, paths and tax numbers as well: so it has to be grouped as cards are. */
const DIVIDED_RUN = runOf(`[./${SPACES}]`);
const PRINTED_GROUPS: readonly (readonly number[])[] = [
  [4, 4, 4, 4],
  [4, 4, 4, 4, 1],
  [4, 4, 4, 4, 2],
  [4, 4, 4, 4, 3],
  [4, 6, 5],
  [4, 6, 4],
  [4, 4, 4, 3],
  [4, 4, 4, 2],
  [6, 13],
];
const UUID = /(?<![0-9a-f])[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![0-9a-f])/gi;

/** Whether a card number stands somewhere in `text`. Linear in its length. */
export function containsCardNumber(text: string): boolean {
  if (!ENOUGH_DIGITS.test(text)) return false;
  const searched = text.replace(UUID, "?");
  return (
    runsIn(searched, RUN).some(runHoldsCardNumber) ||
    runsIn(searched, DIVIDED_RUN).some(runHoldsPrintedNumber)
  );
}

function runOf(divider: string): RegExp {
  return new RegExp(`(?<![\\p{L}\\p{N}])\\+?\\d+(?:${divider}{1,3}\\d+)*(?![\\p{L}\\p{N}])`, "gu");
}

/** The groups of each run of digits that is no phone number. */
function runsIn(text: string, run: RegExp): (readonly string[])[] {
  return [...text.matchAll(run)].flatMap(([found]) => {
    const groups = found.match(/\d+/g) ?? [];
    const isPhone = found.startsWith("+") && groups.join("").length <= LONGEST_PHONE;
    return isPhone ? [] : [groups];
  });
}

function runHoldsPrintedNumber(groups: readonly string[]): boolean {
  return groups.some((_, first) =>
    PRINTED_GROUPS.some(
      (lengths) =>
        lengths.every((length, at) => groups[first + at]?.length === length) &&
        isCardNumber(groups.slice(first, first + lengths.length).join("")),
    ),
  );
}

/** A card number starts and ends at a group's edge: "1234 1234 1234 1234 12/28" is one and an expiry date. */
function runHoldsCardNumber(groups: readonly string[]): boolean {
  for (let first = 0; first < groups.length; first++) {
    let digits = "";
    for (let last = first; last < groups.length && digits.length < LONGEST; last++) {
      digits += groups[last] ?? "";
      const shortest = first === last ? SHORTEST : SHORTEST_GROUPED;
      if (digits.length >= shortest && digits.length <= LONGEST && isCardNumber(digits)) return true;
    }
  }
  return false;
}

function isCardNumber(digits: string): boolean {
  return hasLuhnDigit(digits) && NETWORKS.some((network) => belongsTo(network, digits));
}

function belongsTo([from, to, lengths]: (typeof NETWORKS)[number], digits: string): boolean {
  const prefix = digits.slice(0, from.length);
  return prefix >= from && prefix <= to && lengths.includes(digits.length);
}

function hasLuhnDigit(digits: string): boolean {
  let sum = 0;
  for (let index = 0; index < digits.length; index++) {
    const digit = digits.charCodeAt(digits.length - 1 - index) - 48;
    const doubled = index % 2 === 1 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
}
