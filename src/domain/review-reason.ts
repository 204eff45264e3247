/** Why a review is open: kept in its row, shown to its person, and looked up in docs/reviews.md. */
export const REVIEW_REASONS = [
  "outcome_unknown",
  "paid_after_end",
  "provider_account_changed",
  "provider_amount_mismatch",
  "provider_key_lifetime_over",
  "provider_key_mismatch",
  "provider_key_spent",
  "provider_object_foreign",
  "provider_object_missing",
  "provider_object_stray",
  "provider_status_unrecognized",
  "outside_refund_mismatch",
] as const;
export type ReviewReason = (typeof REVIEW_REASONS)[number];
