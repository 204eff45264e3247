import { describe, expect, test, vi } from "vitest";
import { plotWithout } from "./explored.js";
import { DISPUTE } from "./scenarios.js";

/**
 * What the rules for disputes are for: each is taken out of the shipped sources, and the explorer tells what happens
 * then, in the fewest steps. A patch that no longer fits its source fails here, so that it is thought about.
 */

vi.setConfig({ testTimeout: 300_000 });

const OPENED = [
  "pi_1 is disputed, and 100 are taken",
  "a webhook tells of dp_1, and it is read: needs_response",
  "what was read of dp_1 is written: needs_response",
] as const;

test("without the look at disputes, a refund is accepted of money that a dispute has taken", async () => {
  const patch = {
    file: "src/domain/admit-effect.ts",
    find: "if (hasOpenDispute(payment.disputes)) {",
    replace: "if (hasOpenDispute([])) {",
  };
  expect(await plotWithout([patch], DISPUTE)).toEqual([
    ...OPENED,
    "the client's refund key-2 is accepted",
    "=> a refund of pay_1 is accepted, and its money is with a dispute",
  ]);
});

describe("without the order of what was read of a dispute", () => {
  test("a reading that is older than what is kept takes it back", async () => {
    const patch = {
      file: "src/domain/dispute.ts",
      find: 'if (beganAt.getTime() > Date.parse(known.read_at)) return "newer";',
      replace: 'if (beganAt.getTime() > 0) return "newer";',
    };
    expect(await plotWithout([patch], DISPUTE)).toEqual([
      "pi_1 is disputed, and 100 are taken",
      "a webhook tells of dp_1, and it is read: needs_response",
      "the dispute dp_1 is won, and the money comes back",
      "a webhook tells of dp_1, and it is read: won",
      "what was read of dp_1 is written: won",
      "what was read of dp_1 is written: needs_response",
      "=> dp_1 was won, and is shown as open again",
    ]);
  });

  test("movements that are known are posted and told again", async () => {
    const patch = {
      file: "src/domain/dispute.ts",
      find: "({ transactionId }) => known?.movements.every((one) => one.transactionId !== transactionId) ?? true,",
      replace: "() => true,",
    };
    expect(await plotWithout([patch], DISPUTE)).toEqual([
      ...OPENED,
      "a webhook tells of dp_1, and it is read: needs_response",
      "what was read of dp_1 is written: needs_response",
      "=> the ledger of pay_1 has disputed and lost 100, 0; its disputes 200, 0",
    ]);
  });
});
