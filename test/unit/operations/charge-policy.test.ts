import { expect, it } from "vitest";
import { readConfig } from "../../../src/config.js";
import { chargePolicyOf } from "../../../src/operations/charge-policy.js";

it("makes decisions with the settings' own durations, each in its place", () => {
  const { settings } = readConfig({
    ATTEMPT_RETRY_BUDGET_MS: "1001",
    PROVIDER_KEY_LIFETIME_MS: "1002",
    UNKNOWN_REVIEW_AFTER_MS: "1003",
    CUSTOMER_ACTION_EXPIRY_MS: "1004",
    RETRY_FIRST_MS: "1005",
    RETRY_MOST_MS: "1006",
    FOLLOW_FIRST_MS: "1007",
    FOLLOW_MOST_MS: "1008",
  });
  expect(chargePolicyOf(settings)).toMatchObject({
    retryBudgetMs: 1_001,
    keyLifetimeMs: 1_002,
    reviewAfterMs: 1_003,
    customerActionExpiryMs: 1_004,
    retry: { firstMs: 1_005, mostMs: 1_006 },
    follow: { firstMs: 1_007, mostMs: 1_008 },
  });
});
