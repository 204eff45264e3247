/** Settings that the control API changes while the sandbox runs. Times on the sandbox's clock unless said otherwise. */
export interface LiveSettings {
  /** Real milliseconds that every call takes. */
  latency_ms: number;
  /** How long a new object stays out of search. */
  search_lag_ms: number;
  /** How long an authorisation made from now on holds: its `capture_before`. */
  authorization_lifetime_ms: number;
  /** Until a refund to `pm_card_pendingRefund` succeeds and one to `pm_card_refundFail` fails; null: by control only. */
  refund_settles_after_ms: number | null;
  /** Until `pm_card_createDispute` and its kin open their dispute; null: by control only. */
  dispute_opens_after_ms: number | null;
  /** Until a captured charge gets its balance transaction, and with it its fee. 0: in the answer to the capture. */
  charge_booked_after_ms: number;
  /** Until the money of a captured charge can be paid out. */
  funds_available_after_ms: number;
}

const DAY_MS = 24 * 60 * 60 * 1000;

/** Authorisations: docs.stripe.com/payments/place-a-hold-on-a-payment-method. Funds: two days, as in the United States. */
export const DEFAULT_SETTINGS: LiveSettings = {
  latency_ms: 0,
  search_lag_ms: 1_000,
  authorization_lifetime_ms: 7 * DAY_MS,
  refund_settles_after_ms: 60_000,
  dispute_opens_after_ms: 1_000,
  charge_booked_after_ms: 0,
  funds_available_after_ms: 2 * DAY_MS,
};
