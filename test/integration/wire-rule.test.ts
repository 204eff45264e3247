import { expect, test } from "vitest";
import type { LoggedRequest } from "../../src/sandbox/index.js";
import { breachesOfTheWireRule } from "../support/wire-rule.js";

const ATTEMPT = `payment-attempt:att_${"0".repeat(32)}`;

let sequence = 0;

function logged(
  call: "create" | "confirm" | "cancel" | "list" | "retrieve",
  changes: Partial<LoggedRequest>,
): LoggedRequest {
  sequence += 1;
  const asks = call === "list" || call === "retrieve";
  const suffix = { create: "", confirm: ":confirm", cancel: ":fence", list: "", retrieve: "" }[call];
  return {
    sequence,
    request_id: `req_${sequence}`,
    method: asks ? "GET" : "POST",
    path: call === "create" || call === "list" ? "/v1/payment_intents" : `/v1/payment_intents/pi_1/${call}`,
    call: `payment_intents.${call}`,
    object_id: call === "list" ? null : "pi_1",
    parameters: {},
    idempotency_key: asks ? null : `${ATTEMPT}${suffix}`,
    stripe_version: null,
    account: "acct_1",
    livemode: false,
    received_at: "2026-01-01T00:00:00.000Z",
    arrival: sequence,
    fault: null,
    status: 200,
    result_status: 200,
    error_code: null,
    replayed: false,
    effect: "none",
    abandoned: false,
    ...changes,
  };
}

const lost = { status: null };
const refused = { status: 429, error_code: "rate_limit" };

test.each([
  ["a question that was answered", [logged("confirm", lost), logged("retrieve", {}), logged("confirm", {})]],
  ["a list, for a create", [logged("create", lost), logged("list", {}), logged("create", {})]],
  [
    "nothing, where all earlier sends were refused",
    [logged("confirm", refused), logged("confirm", refused), logged("confirm", {})],
  ],
])("%s between two sends keeps the rule", (_name, log) => {
  expect(breachesOfTheWireRule(log)).toEqual([]);
});

test.each([
  ["nothing", [logged("confirm", lost), logged("confirm", {})]],
  ["a lock timeout", [logged("confirm", { status: 429, error_code: "lock_timeout" }), logged("confirm", {})]],
  [
    "a question about another object",
    [logged("confirm", lost), logged("retrieve", { object_id: "pi_2" }), logged("confirm", {})],
  ],
  [
    "a question without an answer",
    [logged("confirm", lost), logged("retrieve", { status: 500 }), logged("confirm", {})],
  ],
  [
    "a read of one object, for a create",
    [logged("create", lost), logged("retrieve", {}), logged("create", {})],
  ],
  [
    "a refusal of the second of three",
    [logged("cancel", lost), logged("retrieve", {}), logged("cancel", refused), logged("cancel", {})],
  ],
  [
    "a new round of a fence",
    [logged("cancel", lost), logged("cancel", { idempotency_key: `${ATTEMPT}:fence-2` })],
  ],
])("%s between two sends breaks the rule", (_name, log) => {
  expect(breachesOfTheWireRule(log)).toHaveLength(1);
});

test("the same key with other parameters breaks the rule", () => {
  const log = [logged("create", refused), logged("create", { parameters: { amount: "1" } })];
  expect(breachesOfTheWireRule(log)).toHaveLength(1);
});

test("a send without a key, or with one that is not an attempt's, breaks the rule", () => {
  const log = [
    logged("create", { idempotency_key: null }),
    logged("confirm", { idempotency_key: "order-17" }),
  ];
  expect(breachesOfTheWireRule(log)).toHaveLength(2);
});

test("a send that arrives after it was given up may be asked about before it arrives", () => {
  const received_at = "2026-01-01T00:00:01.000Z";
  const list = logged("list", {});
  const log = [list, logged("create", { ...lost, received_at }), logged("create", { received_at })];
  const givenUp = { providerKey: ATTEMPT, at: Date.parse(received_at) - 1 };
  expect(breachesOfTheWireRule(log, [givenUp])).toEqual([]);
  expect(breachesOfTheWireRule(log, [{ ...givenUp, at: givenUp.at + 2 }])).toHaveLength(1);
  expect(breachesOfTheWireRule(log, [{ ...givenUp, providerKey: `${ATTEMPT}:confirm` }])).toHaveLength(1);
  const third = [...log, logged("create", { received_at })];
  expect(breachesOfTheWireRule(third, [givenUp])).toHaveLength(1);
});
