import { describe, expect, test, vi } from "vitest";
import { plotWithout } from "./explored.js";
import type { Scenario } from "./model/scenario.js";
import { CAPTURE_AND_CANCEL, ONE_PAYMENT, REFUND, STALE_WORKERS, UNLISTED_REFUND } from "./scenarios.js";

/**
 * What the rules of the provider's side are for: each is taken out of the shipped sources, and the explorer tells what
 * happens then, in the fewest steps. A patch that no longer fits its source fails here, so that it is thought about.
 */

vi.setConfig({ testTimeout: 300_000 });

const CREATED_AND_CONFIRMED = [
  "a worker claims the charge of pay_1, and marks its first call as about to be sent",
  "Stripe executes the create",
  "the worker hears of the create: created; next: confirm",
] as const;

describe("without the barrier", () => {
  test("a create is sent over one whose outcome is unknown", async () => {
    const patch = {
      file: "src/domain/charge-steps.ts",
      find: `case "create_unknown":\n      return { type: "ask", question: "find" };`,
      replace: `case "create_unknown":\n      return { type: "send", call: "create" };`,
    };
    expect(await plotWithout([patch], ONE_PAYMENT)).toEqual([
      "a worker claims the charge of pay_1, and marks its first call as about to be sent",
      "the worker hears nothing of the create before its deadline: the request is still under way",
      "a worker claims the charge of pay_1",
      "=> create is sent while an earlier send is unknown, and no question has been answered since",
    ]);
  });

  test("a refund is sent over one whose outcome is unknown", async () => {
    const patch = {
      file: "src/domain/effect-steps.ts",
      find: `case "send_unknown":\n    case "following":`,
      replace: `case "send_unknown":\n      return { type: "send", call: effectCallOf(view) };\n    case "following":`,
    };
    expect(await plotWithout([patch], REFUND)).toEqual([
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
    expect(await plotWithout([patch], STALE_WORKERS)).toEqual([
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
    expect(await plotWithout([patch], ONE_PAYMENT)).toEqual([
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
    expect(await plotWithout([patch], { ...ONE_PAYMENT, faults: 1 })).toEqual([
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
  expect(await plotWithout(patches, scenario)).toEqual([
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

test("without the key's lifetime, a refund that the list does not show is made twice", async () => {
  const patch = {
    file: "src/domain/charge-change.ts",
    find: "return view.now.getTime() - since.getTime() >= view.policy.keyLifetimeMs;",
    replace: "return since.getTime() > view.now.getTime() + view.policy.keyLifetimeMs;",
  };
  expect(await plotWithout([patch], UNLISTED_REFUND)).toEqual([
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

describe("without a last look at the clock or at the payment", () => {
  test("a confirm that was decided in time goes out after the budget", async () => {
    const patch = {
      file: "src/operations/run-attempt.ts",
      find: "  if (isTooLate({ ...held.view, now: held.now() }, call)) return commit(deps, held, leftUnsent, null);\n",
      replace: "",
    };
    expect(await plotWithout([patch], ONE_PAYMENT)).toEqual([
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
    expect(await plotWithout([patch], { ...CAPTURE_AND_CANCEL, faults: 0 })).toEqual([
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
