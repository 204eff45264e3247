import { describe, expect, test } from "vitest";
import { REFUND_STATUSES } from "../../src/domain/refund.js";
import { exploreAll } from "./explored.js";
import { EFFECTS } from "./scenarios.js";

const TEST_MS = 600_000;
const CALLS = ["capture", "cancel", "refund"];
const STATES = ["started", "sending", "send_unknown", "completed"];

describe("every interleaving keeps every promise", () => {
  const reached = exploreAll(EFFECTS, TEST_MS);

  test("and every state of an effect and of a refund is among them", () => {
    const effects = CALLS.flatMap((call) => STATES.map((state) => `${call} ${state}`));
    const refunds = REFUND_STATUSES.map((status) => `refund of ${status}`);
    const all = [...effects, "refund following", ...refunds, "payment authorized"];
    expect(all.filter((one) => !reached.has(one))).toEqual([]);
  });
});
