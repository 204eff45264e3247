import type { Patch } from "./patched.js";
import * as scenarios from "./scenarios.js";
import type { Scenario } from "./model/scenario.js";

export interface Rule {
  readonly name: string;
  readonly patches: readonly Patch[];
  readonly scenario: Scenario;
}

const DECISIONS = "src/domain/charge-decisions.ts";
const ANSWERS = "src/domain/charge-answers.ts";

export const RULES: readonly Rule[] = [
  {
    name: "the barrier (charge)",
    patches: [{ file: "src/domain/charge-steps.ts", find: `    case "create_unknown":
      return { type: "ask", question: "find" };`, replace: `    case "create_unknown":
      return { type: "send", call: "create" };` }],
    scenario: scenarios.ONE_CHARGE,
  },
  {
    name: "the barrier (refund)",
    patches: [{ file: "src/domain/effect-steps.ts", find: `    case "started":
    case "send_unknown":
    case "following":`, replace: `    case "send_unknown":
      return { type: "send", call: effectCallOf(view) };
    case "started":
    case "following":` }],
    scenario: scenarios.REFUND_FOR_LONG,
  },
  {
    name: "the lease's fence",
    patches: [{ file: "src/store/advance.ts", find: "and a.fence = i.fence and a.state = i.from_state for update", replace: "and a.state = i.from_state for update" }],
    scenario: scenarios.STALE_WORKERS,
  },
  {
    name: "the fence before a charge is given up",
    patches: [{ file: DECISIONS, find: "  if (late || spent) return fence(view, events, note, late ? \"retry_budget_over\" : \"provider_key_spent\");", replace: `  if (late || spent) return notPerformed(view, "retry_budget_over", note);` }],
    scenario: scenarios.ONE_CHARGE,
  },
  {
    name: "whole-attempt proof",
    patches: [
      { file: "src/operations/call-provider.ts", find: `const resend = call === "fence" ? false : attempt.unresolved;`, replace: "const resend = false;" },
      { file: "src/domain/effect-answers.ts", find: `      return view.attempt.unresolved
        ? effectWaiting(view, { ...wait, ...leftUnknown(view) })
        : effect`, replace: `      return effect` },
    ],
    scenario: scenarios.REFUND_FOR_LONG,
  },
  {
    name: "cancel after decline",
    patches: [
      { file: ANSWERS, find: `  const hasObject = view.attempt.providerPaymentId !== null;
  const reason =`, replace: `  const hasObject = false;
  const reason =` },
    ],
    scenario: scenarios.ONE_ORDER,
  },
  {
    name: "order id's hold (released at the decline)",
    patches: [
      { file: ANSWERS, find: "payment: { failure, nextAction: null, ...(hasObject ? {} : { releaseOrderId: true as const }) },", replace: "payment: { failure, nextAction: null, releaseOrderId: true as const }," },
    ],
    scenario: scenarios.ONE_ORDER,
  },
  {
    name: "order id's hold (not minded)",
    patches: [
      { file: "src/store/accept.ts", find: "select tenant_id, merchant_order_id, payment_id from fresh where merchant_order_id is not null", replace: "select tenant_id, merchant_order_id, payment_id from fresh where false" },
    ],
    scenario: scenarios.ONE_ORDER,
  },
  {
    name: "derived ids",
    patches: [{ file: "src/operations/attempt-id.ts", find: "const parts = JSON.stringify([name.tenantId, name.operation, name.key, run]);", replace: "const parts = JSON.stringify([name.tenantId, name.operation, name.key, run, Math.random()]);" }],
    scenario: scenarios.RESTORED_EMPTY,
  },
  {
    name: "old looks",
    patches: [{ file: "src/operations/run-attempt.ts", find: "    if (again !== null) return again;\n", replace: "" }],
    scenario: { ...scenarios.CAPTURE_AND_CANCEL, faults: 0 },
  },
  {
    name: "late confirm",
    patches: [{ file: "src/operations/run-attempt.ts", find: `  if (isLate()) return "late";\n`, replace: "" }],
    scenario: scenarios.ONE_CHARGE,
  },
  {
    name: "lifetime",
    patches: [{ file: "src/domain/charge-change.ts", find: "return view.now.getTime() - since.getTime() >= view.policy.keyLifetimeMs;", replace: "return since > view.now;" }],
    scenario: scenarios.UNLISTED_REFUND,
  },
  {
    name: "account check",
    patches: [{ file: "src/domain/charge-steps.ts", find: `  if (own && sameMode) return "none";`, replace: `  if (own || sameMode) return "none";` }],
    scenario: scenarios.OTHER_CREDENTIAL,
  },
  {
    name: "age (claim)",
    patches: [{ file: "src/store/attempts.ts", find: `
               and a.created_at > now() - \${request.retryBudgetMs}::float8 * interval '1 millisecond'`, replace: "" }],
    scenario: scenarios.RESTORED_ROW,
  },
  {
    name: "age (row)",
    patches: [{ file: "src/domain/charge-change.ts", find: "return ageMs < view.policy.retryBudgetMs + ROW_TRUSTED_MS;", replace: "return ageMs > 0;" }],
    scenario: scenarios.RESTORED_ROW,
  },
];
