import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { CHARGE_CALLS, EFFECT_CALLS } from "../../../../src/domain/provider.js";
import {
  classifySend,
  LOOKUP_TABLE,
  lookupRow,
  SEND_TABLE,
  sendRow,
} from "../../../../src/providers/stripe/classify-error.js";
import type { WireAnswer } from "../../../../src/providers/stripe/wire-answer.js";
import { classificationPage } from "./classification-page.js";

const PAGE = fileURLToPath(new URL("../../../../docs/stripe-classification.md", import.meta.url));

function answer(
  parts: Partial<WireAnswer> & { type?: string; code?: string | null; param?: string | null },
): WireAnswer {
  const { type = "invalid_request_error", code = null, param = null, ...rest } = parts;
  const failed = parts.fault === undefined && (parts.status ?? 0) >= 400;
  return {
    fault: null,
    status: 200,
    replayed: false,
    retryAfterMs: null,
    error: failed ? { type, code, declineCode: null, adviceCode: null, param, message: null } : null,
    body: null,
    evidence: { httpStatus: parts.status ?? null, code, requestId: null },
    ...rest,
  };
}

const FAULTS_AFTER_SENDING = ["timeout", "lost", "unreadable"] as const;
const STATUSES = [
  100, 200, 201, 301, 304, 400, 401, 402, 403, 404, 405, 408, 409, 413, 418, 424, 429, 451, 500, 502, 503,
  504, 599,
];
const TYPES = ["api_error", "card_error", "idempotency_error", "invalid_request_error"];
const CODES = new Set([
  null,
  "something_new",
  "resource_missing",
  ...SEND_TABLE.flatMap(({ when }) => when.codes ?? []),
]);
const PARAMS = [null, "amount", "something_else"];

/** Every answer that differs in anything the table looks at. */
const everyAnswer: WireAnswer[] = [
  answer({ fault: "refused", status: null }),
  ...FAULTS_AFTER_SENDING.flatMap((fault) =>
    [null, ...STATUSES].flatMap((status) =>
      [false, true].map((replayed) => answer({ fault, status, replayed })),
    ),
  ),
  ...STATUSES.flatMap((status) =>
    [false, true].flatMap((replayed) =>
      TYPES.flatMap((type) =>
        [...CODES].flatMap((code) => PARAMS.map((param) => answer({ status, replayed, type, code, param }))),
      ),
    ),
  ),
];
const everySend = [...CHARGE_CALLS, ...EFFECT_CALLS].flatMap((call) =>
  [false, true].map((resend) => ({ call, resend })),
);
const everyCase = everySend.flatMap((send) =>
  everyAnswer.map((wire) => ({ send, wire, outcome: classifySend(wire, send) })),
);

describe("the table of sends", () => {
  it.each(SEND_TABLE.map((row, index) => [index + 1, row] as const))(
    "has a use for row %i",
    (_number, row) => {
      expect(everyCase.some(({ wire, send }) => sendRow(wire, send) === row)).toBe(true);
    },
  );

  it("ends with a row for everything else, which is unknown", () => {
    expect(SEND_TABLE.at(-1)?.when).toEqual({});
    expect(SEND_TABLE.at(-1)?.then).toEqual({ type: "unknown", reason: "unreadable" });
  });

  it("takes nothing but a complete 2xx for an object", () => {
    const objects = everyCase.filter(({ outcome }) => outcome === "object");
    expect(objects.length).toBeGreaterThan(0);
    expect(objects.every(({ wire }) => wire.fault === null && [200, 201].includes(wire.status ?? 0))).toBe(
      true,
    );
  });

  it("takes nothing but a 402 for a decline", () => {
    const declines = everyCase.filter(({ outcome }) => outcome !== "object" && outcome.type === "declined");
    expect(new Set(declines.map(({ wire }) => wire.status))).toEqual(new Set([402]));
  });

  it("never lets the refusal of a re-send speak for the earlier send, unless it is a replay", () => {
    const final = everyCase.filter(
      ({ send, wire, outcome }) =>
        send.resend &&
        !wire.replayed &&
        outcome !== "object" &&
        ["not_performed", "rejected"].includes(outcome.type),
    );
    expect(final).toEqual([]);
  });

  it("never calls a 5xx, a lost answer or one that is not Stripe's anything but unknown", () => {
    const doubtful = everyCase.filter(
      ({ wire }) => (wire.fault ?? "refused") !== "refused" || (wire.status ?? 0) >= 500,
    );
    expect(doubtful.length).toBeGreaterThan(0);
    expect(doubtful.every(({ outcome }) => outcome !== "object" && outcome.type === "unknown")).toBe(true);
  });

  it("never takes a 404 for a committed id as the end", () => {
    const missing = everyCase.filter(
      ({ send, wire }) => send.call !== "create" && wire.status === 404 && wire.fault === null,
    );
    expect(missing.every(({ outcome }) => outcome !== "object" && outcome.type === "unknown")).toBe(true);
  });

  it("calls a key spent only where the stored answer is all that it can bring", () => {
    const spent = everyCase.filter(
      ({ outcome }) => outcome !== "object" && outcome.type === "unknown" && outcome.keySpent,
    );
    expect(spent.length).toBeGreaterThan(0);
    expect(spent.every(({ wire }) => wire.replayed || wire.error?.type === "idempotency_error")).toBe(true);
  });
});

describe("the table of questions", () => {
  it.each(LOOKUP_TABLE.map((row, index) => [index + 1, row] as const))(
    "has a use for row %i",
    (_number, row) => {
      expect(everyAnswer.some((wire) => lookupRow(wire) === row)).toBe(true);
    },
  );

  it("takes nothing but Stripe's own word for a missing object", () => {
    const missing = everyAnswer.filter((wire) => lookupRow(wire).then.type === "missing");
    expect(missing.length).toBeGreaterThan(0);
    const said = missing.map(({ status, error }) => `${status} ${error?.code}`);
    expect(new Set(said)).toEqual(new Set(["400 resource_missing", "404 resource_missing"]));
    expect(lookupRow(answer({ status: 404, code: "resource_missing" })).then).toEqual({ type: "missing" });
  });
});

describe("docs/stripe-classification.md", () => {
  it("shows the tables that the code uses", async () => {
    expect(existsSync(PAGE)).toBe(true);
    await expect(classificationPage(SEND_TABLE, LOOKUP_TABLE)).toMatchFileSnapshot(PAGE);
  });
});
