import type { Settings } from "../config.js";
import type { ChargePolicy } from "../domain/charge-change.js";

/** What decisions are made with: the settings' durations. */
export function chargePolicyOf(settings: Settings): ChargePolicy {
  return {
    retryBudgetMs: settings.retryBudgetMs,
    keyLifetimeMs: settings.providerKeyLifetimeMs,
    reviewAfterMs: settings.unknownReviewAfterMs,
    retry: { firstMs: settings.retryFirstMs, mostMs: settings.retryMostMs },
    follow: { firstMs: settings.followFirstMs, mostMs: settings.followMostMs },
    customerActionExpiryMs: settings.customerActionExpiryMs,
    random: Math.random,
  };
}
