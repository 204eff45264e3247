/**
 * Everything of the shipped code that the explorer drives, and nothing of its own: what decides, what is written and
 * what is sent come from here. `patched.ts` builds the same module from sources in which a rule has been taken out.
 */

export { admit } from "../../src/domain/admit-effect.js";
export { applyChange } from "../../src/domain/apply-change.js";
export { budgetIsOver } from "../../src/domain/charge-change.js";
export { isBeforeObject } from "../../src/domain/charge-decisions.js";
export { leftUnknown } from "../../src/domain/charge-steps.js";
export { advanceDispute } from "../../src/domain/dispute.js";
export { judgeEarlierRuns, mindsEarlierRuns } from "../../src/domain/earlier-runs.js";
export { effectIsLate, effectLeftUnknown } from "../../src/domain/effect-steps.js";
export { postingsOf } from "../../src/domain/ledger.js";
export { judgeCharge, judgeOutsideRefund, judgeRefund } from "../../src/domain/provider-event.js";
export { compareCharge } from "../../src/domain/reconcile.js";
export { compareRefund } from "../../src/domain/reconcile-after-charge.js";
export { allowedResolutions } from "../../src/domain/review.js";
export { decideAfterLookup, decideAfterSend, decideFirst } from "../../src/domain/review-decisions.js";
export { askOnlyWhile } from "../../src/operations/ask-only.js";
export { attemptIdOf } from "../../src/operations/attempt-id.js";
export { askQuestion, sendCall } from "../../src/operations/call-provider.js";
export { recordOutcome } from "../../src/operations/record-outcome.js";
export {
  prepareChargeParameters,
  readChargeParameters,
} from "../../src/providers/stripe/charge-parameters.js";
export { classifySend } from "../../src/providers/stripe/classify-error.js";
export {
  prepareEffectParameters,
  readEffectParameters,
} from "../../src/providers/stripe/effect-parameters.js";
export { findCharge } from "../../src/providers/stripe/find-charge.js";
export { findRefund } from "../../src/providers/stripe/find-refund.js";
export { refusalOf } from "../../src/providers/stripe/list-pages.js";
export { toProviderCharge } from "../../src/providers/stripe/outcome.js";
export { toProviderRefund } from "../../src/providers/stripe/refund-outcome.js";
export { DATABASE_CHANGED, NOT_ANSWERED } from "../../src/store/recovery.js";
export { attemptOf, paymentOf, refundOf } from "../../src/store/rows.js";
