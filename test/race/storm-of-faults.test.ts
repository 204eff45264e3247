import { expect, test } from "vitest";
import type { FaultRuleInput } from "../../src/sandbox/index.js";
import { documentOf, newKey } from "../support/harness.js";
import { payPatiently } from "../support/patient-client.js";
import { CROWDED, useStage } from "../support/stage.js";

const stage = useStage();
const PAYMENTS = 60;
const PROBABILITY = 0.08;

const SENDS = ["payment_intents.create", "payment_intents.confirm", "payment_intents.cancel"];
const QUESTIONS = ["payment_intents.retrieve", "payment_intents.list"];

function often(call: readonly string[], fault: FaultRuleInput["fault"]): FaultRuleInput {
  return { match: { call }, times: null, probability: PROBABILITY, fault };
}

const STORM: readonly FaultRuleInput[] = [
  often(SENDS, { type: "reset", effect: "applied" }),
  often(SENDS, { type: "reset", effect: "none" }),
  often(SENDS, { type: "reset", effect: "later", arrival: "in_network", effect_after_ms: 150 }),
  often(SENDS, { type: "reset", effect: "later", arrival: "executing", effect_after_ms: 150 }),
  often(SENDS, { type: "stored_error", effect: "applied" }),
  often(SENDS, { type: "stored_error", effect: "none" }),
  often(SENDS, { type: "stored_error", effect: "later", effect_after_ms: 150 }),
  often(SENDS, { type: "error", status: 429 }),
  often(SENDS, { type: "error", status: 409 }),
  often(SENDS, { type: "hang", effect: "applied" }),
  often(QUESTIONS, { type: "error", status: 500 }),
  often(QUESTIONS, { type: "cut_off" }),
];

test("under a storm of faults every key ends in one answer, and no payment is charged twice", async () => {
  const env = { ...CROWDED, ATTEMPT_RETRY_BUDGET_MS: "4000", UNKNOWN_REVIEW_AFTER_MS: "600000" };
  const harness = await stage.start({ env });
  const other = await harness.another({ env });
  for (const rule of STORM) await harness.sandbox.control.addFault(rule);
  const clients = Array.from({ length: PAYMENTS }, async (_, at) => {
    const declines = at % 5 === 0;
    const payment_method = declines ? "pm_card_visa_chargeDeclined" : "pm_card_visa";
    const request = { key: newKey(), input: { payment_method, merchant_order_id: `order-${at}` } };
    const deps = at % 2 === 0 ? [harness.deps, other.deps] : [other.deps, harness.deps];
    const answer = await payPatiently(harness, deps, request);
    expect(documentOf(answer).status).toBe(declines ? "failed" : "succeeded");
    return declines ? 0 : 1;
  });
  const charged = (await Promise.all(clients)).reduce<number>((sum, one) => sum + one, 0);
  expect((await harness.sandbox.control.counts()).successful_charges).toBe(charged);
});
