import { describe, expect, test, vi } from "vitest";
import { machineOf } from "./model/machine.js";
import type { Scenario } from "./model/scenario.js";
import { type Patch, thePatchedCode } from "./patched.js";
import {
  CAPTURE_AND_CANCEL,
  ONE_ORDER,
  ONE_PAYMENT,
  OTHER_CREDENTIAL,
  REFUND,
  RESTORED_EMPTY,
  RESTORED_ROW,
  STALE_WORKERS,
  UNLISTED_REFUND,
} from "./scenarios.js";
import { search } from "./search.js";
import { plotOf } from "./story.js";

/**
 * What the rules of the provider's side are for: each is taken out of the shipped sources, and the explorer tells what
 * happens then, in the fewest steps. A patch that no longer fits its source fails here, so that it is thought about.
 */

vi.setConfig({ testTimeout: 300_000 });
/** Found long before: a search that takes more than this has found nothing. */
const MOST_STATES = 300_000;

async function without(patches: readonly Patch[], scenario: Scenario): Promise<readonly string[]> {
  const machine = await machineOf(await thePatchedCode(patches), scenario);
  const { found } = await search(machine, { states: MOST_STATES });
  return found === null ? [] : plotOf(found);
}

const CREATED_AND_CONFIRMED = [
  "a worker claims the charge of pay_1, and marks its first call as about to be sent",
  "Stripe executes the create",
  "the worker hears of the create: created; next: confirm",
] as const;
const PAID = [...CREATED_AND_CONFIRMED, "Stripe executes the confirm: the card pays"] as const;
const SECOND_IS_PAID = [
  "a worker claims the charge of pay_2, and marks its first call as about to be sent",
  "Stripe executes the create",
  "the worker hears of the create: created; next: confirm",
  "Stripe executes the confirm: the card pays",
] as const;

describe("without the barrier", () => {
  test("a create is sent over one whose outcome is unknown", async () => {
    const patch = {
      file: "src/domain/charge-steps.ts",
      find: `case "create_unknown":\n      return { type: "ask", question: "find" };`,
      replace: `case "create_unknown":\n      return { type: "send", call: "create" };`,
    };
    expect(await without([patch], ONE_PAYMENT)).toEqual([
      "a worker claims the charge of pay_1, and marks its first call as about to be sent",
      "the worker hears nothing of the create before its deadline: the request is still under way",
      "a worker claims the charge of pay_1",
      "=> create is sent while an earlier send is unknown, and no question has been answered since",
    ]);
  });

  test("a refund is sent over one whose outcome is unknown", async () => {
    const patch = {
      file: "src/domain/effect-steps.ts",
      find: `case "started":\n    case "send_unknown":`,
      replace: `case "send_unknown":\n      return { type: "send", call: effectCallOf(view) };\n    case "started":`,
    };
    expect(await without([patch], REFUND)).toEqual([
      "the client's refund key-2 is accepted",
      "a worker claims the refund of pay_1, and marks its first call as about to be sent",
      "the worker hears nothing of the refund before its deadline: the request is still under way",
      "a worker claims the refund of pay_1",
      "=> refund is sent while an earlier send is unknown, and no question has been answered since",
    ]);
  });
});

describe("without the fence", () => {
  test("of the lease, a worker that was taken for dead writes over its successor", async () => {
    const patch = {
      file: "src/store/advance.ts",
      find: "and a.fence = i.fence and a.state = i.from_state for update",
      replace: "and a.state = i.from_state for update",
    };
    expect(await without([patch], STALE_WORKERS)).toEqual([
      "a worker claims the charge of pay_1, and marks its first call as about to be sent",
      "the lease of the worker on the charge of pay_1 ends under it",
      "a worker claims the charge of pay_1",
      "the worker hears nothing of the create before its deadline: the request is still under way",
      "=> a worker whose fence had moved on has written",
    ]);
  });

  test("of the object, a charge is given up while its confirm is under way", async () => {
    const patch = {
      file: "src/domain/charge-decisions.ts",
      find: 'return fence(view, events, note, late ? "retry_budget_over" : "provider_key_spent");',
      replace: 'return notPerformed(view, "retry_budget_over", note);',
    };
    expect(await without([patch], ONE_PAYMENT)).toEqual([
      ...CREATED_AND_CONFIRMED,
      "the worker hears nothing of the confirm before its deadline: the request is still under way",
      "a worker claims the charge of pay_1",
      "Stripe executes the get",
      "time passes: the budget is over",
      "the worker hears of the get: found, created",
      "a confirm that was still under way is executed: the card pays",
      "=> pay_1 was proven to be without effect, and pi_1 is charged",
    ]);
  });

  test("that takes a new key after a stored error, closing an object never ends", async () => {
    const patch = {
      file: "src/domain/charge-decisions.ts",
      find: "fenceRound: again && attempt.keySpent ? attempt.fenceRound + 1 : attempt.fenceRound,",
      replace: "fenceRound: attempt.fenceRound,",
    };
    expect(await without([patch], { ...ONE_PAYMENT, faults: 1 })).toEqual([
      "a worker claims the charge of pay_1, and marks its first call as about to be sent",
      "Stripe executes the create",
      "time passes: the budget is over",
      "the worker hears of the create: created; next: fence",
      "Stripe executes the fence not, and answers with a 500 that it keeps",
      "=> from here it never ends by itself",
    ]);
  });
});

test("without the proof for the whole attempt, a refusal of the last send is taken for one of all", async () => {
  const patches = [
    {
      file: "src/operations/call-provider.ts",
      find: 'const resend = call === "fence" ? false : attempt.unresolved;',
      replace: "const resend = false;",
    },
    {
      file: "src/domain/effect-answers.ts",
      find: "return view.attempt.unresolved\n        ? effectWaiting",
      replace: "return false\n        ? effectWaiting",
    },
  ];
  const scenario: Scenario = {
    ...REFUND,
    runs: 1,
    bank: ["refunds"],
    allowed: ["no_answer", "rate_limit"],
    faults: 3,
  };
  expect(await without(patches, scenario)).toEqual([
    "the client's refund key-2 is accepted",
    "a worker claims the refund of pay_1, and marks its first call as about to be sent",
    "the worker hears nothing of the refund before its deadline: the request is still under way",
    "a worker claims the refund of pay_1",
    "Stripe executes the find_refund",
    "the worker hears of the find_refund: absent; next: refund",
    "Stripe executes the refund not: 429, refused before execution",
    "the worker hears of the refund: not performed (rate_limited)",
    "time passes: the budget is over",
    "a worker claims the refund of pay_1",
    "the worker hears nothing of the find_refund before its deadline: the answer is lost",
    "a refund that was still under way is executed: refunded",
    "=> re_1 was proven to be without effect, and re_stripe_1 is made",
  ]);
});

test("without the cancel after a decline, the customer pays an object that nobody looks at any more", async () => {
  const patch = {
    file: "src/domain/charge-answers.ts",
    find: "const hasObject = view.attempt.providerPaymentId !== null;",
    replace: "const hasObject = false;",
  };
  expect(await without([patch], ONE_ORDER)).toEqual([
    ...CREATED_AND_CONFIRMED,
    "Stripe executes the confirm: the card declines",
    "the worker hears of the confirm: declined",
    "the customer pays pi_1 with another card",
    "=> pi_1 has taken 100, pay_1 shows 0, and nothing is due",
  ]);
});

describe("without the order id's hold", () => {
  test("until the object is closed, a declined payment and its successor are both paid", async () => {
    const patch = {
      file: "src/domain/charge-answers.ts",
      find: "nextAction: null, ...(hasObject ? {} : { releaseOrderId: true as const }) },",
      replace: "nextAction: null, releaseOrderId: true as const },",
    };
    expect(await without([patch], ONE_ORDER)).toEqual([
      ...CREATED_AND_CONFIRMED,
      "Stripe executes the confirm: the card declines",
      "the worker hears of the confirm: declined; next: fence",
      "the client's request key-2 is accepted as pay_2",
      ...SECOND_IS_PAID,
      "the customer pays pi_1 with another card",
      "=> two charges for order-1",
    ]);
  });

  test("at the accept, two keys charge one order", async () => {
    const patch = {
      file: "src/store/accept.ts",
      find: "from fresh where merchant_order_id is not null\n    ), attempted",
      replace: "from fresh where false\n    ), attempted",
    };
    expect(await without([patch], ONE_ORDER)).toEqual([
      ...PAID,
      "the client's request key-2 is accepted as pay_2",
      ...SECOND_IS_PAID,
      "=> two charges for order-1",
    ]);
  });
});

test("without derived ids, a key whose rows are lost charges again", async () => {
  const patch = {
    file: "src/operations/attempt-id.ts",
    find: "JSON.stringify([name.tenantId, name.operation, name.key, run])",
    replace: "JSON.stringify([name.tenantId, name.operation, name.key, run, Math.random()])",
  };
  expect(await without([patch], RESTORED_EMPTY)).toEqual([
    ...CREATED_AND_CONFIRMED,
    "a backup from before the request is put back",
    "the client's request key-1 is accepted as pay_2",
    ...SECOND_IS_PAID,
    "a confirm that was still under way is executed: the card pays",
    "=> two charges for key-1",
  ]);
});

test("without the key's lifetime, a refund that the list does not show is made twice", async () => {
  const patch = {
    file: "src/domain/charge-change.ts",
    find: "return view.now.getTime() - since.getTime() >= view.policy.keyLifetimeMs;",
    replace: "return since.getTime() > view.now.getTime() + view.policy.keyLifetimeMs;",
  };
  expect(await without([patch], UNLISTED_REFUND)).toEqual([
    "the client's refund key-2 is accepted",
    "a worker claims the refund of pay_1, and marks its first call as about to be sent",
    "Stripe executes the refund: refunded",
    "the worker hears nothing of the refund before its deadline: the answer is lost",
    "a worker claims the refund of pay_1",
    "Stripe executes the find_refund, and does not show what there is",
    "time passes: our trust in the provider's keys has ended",
    "the worker hears of the find_refund: absent; next: refund",
    "time passes: the provider may have removed its keys",
    "Stripe executes the refund, whose key it no longer knows: refunded",
    "=> Stripe has made re_1 twice",
  ]);
});

test("without the account check, a worker with another credential charges through another account", async () => {
  const patch = {
    file: "src/domain/charge-steps.ts",
    find: 'if (own && sameMode) return "none";',
    replace: 'if (own || sameMode) return "none";',
  };
  expect(await without([patch], OTHER_CREDENTIAL)).toEqual([
    "a worker with another account's credential claims the charge of pay_1",
    "Stripe executes the find",
    "the worker hears of the find: absent; next: create",
    "Stripe executes the create",
    "the worker hears of the create: created; next: confirm",
    "Stripe executes the confirm: the card pays",
    "the worker hears of the confirm: succeeded",
    "=> pi_1 was charged through another account than the payment's",
  ]);
});

describe("without the age of a row", () => {
  test("at the claim, a restored row is sent again under a key that Stripe has forgotten", async () => {
    const patch = {
      file: "src/store/attempts.ts",
      find: "and a.created_at > now() - ${request.retryBudgetMs}::float8 * interval '1 millisecond'",
      replace: "",
    };
    expect(await without([patch], RESTORED_ROW)).toEqual([
      ...PAID,
      "time passes: the budget has been over for long",
      "time passes: our trust in the provider's keys has ended",
      "time passes: the provider may have removed its keys",
      "a backup from right after the request is put back",
      "a worker claims the charge of pay_1, and marks its first call as about to be sent",
      "Stripe executes the create, whose key it no longer knows",
      "the worker hears of the create: created; next: fence",
      "Stripe executes the fence",
      "the worker hears of the fence: canceled; next: get",
      "Stripe executes the get",
      "the worker hears of the get: found, canceled",
      "=> pay_1 was proven to be without effect, and pi_1 is charged",
    ]);
  });

  test("as a proof, a restored row is believed to have sent nothing", async () => {
    const patch = {
      file: "src/domain/charge-change.ts",
      find: "return ageMs < view.policy.retryBudgetMs + ROW_TRUSTED_MS;",
      replace: "return ageMs > ROW_TRUSTED_MS;",
    };
    expect(await without([patch], RESTORED_ROW)).toEqual([
      ...PAID,
      "time passes: the budget has been over for long",
      "a backup from right after the request is put back",
      "a worker claims the charge of pay_1",
      "the worker hears nothing of the find before its deadline: the answer is lost",
      "=> pay_1 was proven to be without effect, and pi_1 is charged",
    ]);
  });
});

describe("without a last look at the clock or at the payment", () => {
  test("a confirm that was decided in time goes out after the budget", async () => {
    const patch = {
      file: "src/operations/run-attempt.ts",
      find: '  if (isLate()) return "late";\n',
      replace: "",
    };
    expect(await without([patch], ONE_PAYMENT)).toEqual([
      ...CREATED_AND_CONFIRMED,
      "Stripe executes the confirm not: 429, refused before execution",
      "the worker hears of the confirm: not performed (rate_limited)",
      "a worker claims the charge of pay_1",
      "time passes: the budget is over",
      "it commits what follows from the row; next: confirm",
      "=> a confirm is sent after the budget",
    ]);
  });

  test("an answer from before a cancel authorizes the payment again", async () => {
    const patch = {
      file: "src/operations/run-attempt.ts",
      find: "    if (again !== null) return again;\n",
      replace: "",
    };
    expect(await without([patch], { ...CAPTURE_AND_CANCEL, faults: 0 })).toEqual([
      "a worker claims the charge of pay_1",
      "Stripe executes the get",
      "the client's cancel key-3 is accepted",
      "a worker claims the cancel of pay_1, and marks its first call as about to be sent",
      "Stripe executes the cancel",
      "the worker hears of the cancel: canceled",
      "the worker hears of the get: found, authorized",
      "=> pay_1 left canceled for authorized, and no money has moved",
    ]);
  });
});

test("a patch that no longer fits its source is refused", async () => {
  const patch = { file: "src/domain/charge-change.ts", find: "no such text", replace: "" };
  await expect(thePatchedCode([patch])).rejects.toThrow("holds the text to be replaced 0 times");
});
