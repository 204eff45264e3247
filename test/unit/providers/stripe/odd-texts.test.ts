import { describe, expect, it } from "vitest";
import { toProviderDispute } from "../../../../src/providers/stripe/dispute-outcome.js";
import { toProviderCharge } from "../../../../src/providers/stripe/outcome.js";
import { toProviderRefund } from "../../../../src/providers/stripe/refund-outcome.js";
import { shownText } from "../../../../src/providers/stripe/wire-answer.js";

/** What no row can hold, or nobody would send in earnest: in whatever text it stands, the rest must go on. */
const ODD_TEXTS = {
  "U+0000": "a\0b",
  "half of a surrogate pair": "a\ud800b",
  "a text of 200,000 characters": "x".repeat(200_000),
} as const;
const ODD_TIMES = { "a time after the year 9999": 9e12, "a time before 1970": -1 } as const;
const NOT_STORABLE = /[\0\p{Cs}]/u;
const MOST_KEPT = 6_000;

const INTENT = {
  id: "pi_1",
  status: "requires_payment_method",
  amount: 1000,
  amount_capturable: 0,
  amount_received: 0,
  currency: "usd",
  livemode: false,
  payment_method: null,
  client_secret: "pi_1_secret_2",
  cancellation_reason: null,
  metadata: { payment_attempt_id: "att_1", tenant_id: "ten_1" },
  last_payment_error: {
    type: "card_error",
    code: "card_declined",
    decline_code: "insufficient_funds",
    advice_code: "try_again_later",
    message: "Your card was declined.",
  },
  next_action: { redirect_to_url: { url: "https://bank.example/3ds" } },
  latest_charge: {
    status: "succeeded",
    payment_method_details: { card: { capture_before: 1_800_000_000 } },
    balance_transaction: { id: "txn_1", currency: "usd", fee: 59 },
  },
};

const SHAPES: readonly (readonly [string, object, (value: unknown) => unknown])[] = [
  ["a declined PaymentIntent", INTENT, toProviderCharge],
  ["one that waits for the customer", { ...INTENT, status: "requires_action" }, toProviderCharge],
  ["one whose money is held", { ...INTENT, status: "requires_capture" }, toProviderCharge],
  [
    "a refund",
    {
      id: "re_1",
      status: "failed",
      amount: 1000,
      currency: "usd",
      payment_intent: "pi_1",
      failure_reason: "lost_or_stolen_card",
      metadata: INTENT.metadata,
    },
    toProviderRefund,
  ],
  [
    "a dispute",
    {
      id: "du_1",
      status: "needs_response",
      amount: 1000,
      currency: "usd",
      livemode: false,
      reason: "fraudulent",
      payment_intent: "pi_1",
      balance_transactions: [{ id: "txn_1", amount: -1000, fee: 1500, net: -2500, currency: "usd" }],
    },
    toProviderDispute,
  ],
];

/** The paths of all texts, or of all numbers, in a document. */
function pathsOf(value: unknown, type: "string" | "number", path: readonly string[] = []): string[][] {
  if (typeof value === type) return [[...path]];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => pathsOf(member, type, [...path, name]));
}

function withMember(document: object, path: readonly string[], member: unknown): object {
  const copy = structuredClone(document) as Record<string, unknown>;
  const holder = path.slice(0, -1).reduce((at, name) => at[name] as Record<string, unknown>, copy);
  holder[path.at(-1) ?? ""] = member;
  return copy;
}

/** Every text in what was read. */
function textsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  if (value instanceof Date) return [value.toISOString()];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

describe.each(SHAPES)("%s", (_, shape, read) => {
  it("is read", () => {
    expect(read(shape)).not.toBeNull();
  });

  it.each(Object.entries(ODD_TEXTS))("with %s in any text is read without it, or is none", (_name, odd) => {
    const paths = pathsOf(shape, "string");
    expect(paths.length).toBeGreaterThan(4);
    for (const path of paths) {
      const texts = textsIn(read(withMember(shape, path, odd)));
      expect(
        texts.filter((one) => NOT_STORABLE.test(one) || one.length > MOST_KEPT),
        path.join("."),
      ).toEqual([]);
    }
  });

  it.each(Object.entries(ODD_TIMES))(
    "with %s in any number has only times that can be written down",
    (_name, odd) => {
      for (const path of pathsOf(shape, "number")) {
        const times = textsIn(read(withMember(shape, path, odd))).filter((one) =>
          /^[+-]?\d{4,6}-\d\d-/.test(one),
        );
        expect(
          times.filter((one) => !/^\d{4}-/.test(one)),
          path.join("."),
        ).toEqual([]);
      }
    },
  );
});

it("a declined PaymentIntent stays declined whatever stands in its error", () => {
  for (const odd of Object.values(ODD_TEXTS)) {
    const error = { type: odd, code: odd, decline_code: odd, advice_code: odd, message: odd };
    expect(toProviderCharge({ ...INTENT, last_payment_error: error })?.status).toBe("declined");
  }
});

it("a card number and a key are blanked in a code as in a message", () => {
  const failure = { ...INTENT.last_payment_error, decline_code: "card 4242424242424242 refused" };
  const charge = toProviderCharge({ ...INTENT, last_payment_error: failure });
  expect(charge?.failure?.decline_code).toBe("card [digits redacted] refused");
  expect(shownText("key sk_test_abc123")).toBe("key sk_test_[redacted]");
});
