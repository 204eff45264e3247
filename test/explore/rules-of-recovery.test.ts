import { describe, expect, test, vi } from "vitest";
import { plotWithout } from "./explored.js";
import { ACCEPTED, KEYS_PRUNED } from "./model/clock.js";
import {
  RECOVERED_AGAIN,
  RECOVERED_EMPTY,
  RECOVERED_REFUND,
  RECOVERED_ROW,
  RESTORED_AGAIN,
  RESTORED_REFUND,
} from "./scenarios.js";

/**
 * What the rules for restored rows are for: each is taken out of the shipped sources, and the explorer tells what happens
 * then, in the fewest steps. A patch that no longer fits its source fails here, so that it is thought about.
 */

vi.setConfig({ testTimeout: 300_000 });

const CREATED_AND_CONFIRMED = [
  "a worker claims the charge of pay_1, and marks its first call as about to be sent",
  "Stripe executes the create",
  "the worker hears of the create: created; next: confirm",
] as const;
const PAID = [...CREATED_AND_CONFIRMED, "Stripe executes the confirm: the card pays"] as const;
/** Nobody has noticed, and the provider does not answer in the minute after the budget. */
const BELIEVED = [
  ...PAID,
  "time passes: the budget is over",
  "a backup from right after the request is put back",
  "a worker claims the charge of pay_1",
  "the worker hears nothing of the find before its deadline: the answer is lost",
] as const;
const SECOND_IS_PAID = [
  "Stripe executes the create",
  "the worker hears of the create: created; next: confirm",
  "Stripe executes the confirm: the card pays",
] as const;

describe("without the question about a key's earlier runs", () => {
  test("at the claim, a payment that a restored row tells to have failed is charged again", async () => {
    const patch = {
      file: "src/store/attempts.ts",
      find: "a.state = 'started' and a.run = 1 and a.livemode",
      replace: "a.state = 'started' and a.livemode",
    };
    expect(await plotWithout([patch], RESTORED_AGAIN)).toEqual([
      ...BELIEVED,
      "the client's request key-1, sent again, is accepted as pay_2",
      "a worker claims the charge of pay_2, and marks its first call as about to be sent",
      ...SECOND_IS_PAID,
      "=> two charges for key-1",
    ]);
  });

  test("before the create, it is charged again just so", async () => {
    const patch = {
      file: "src/domain/earlier-runs.ts",
      find: 'return isOver && state === "completed" && !unresolved;',
      replace: "return isOver && (state.length > 0 || unresolved);",
    };
    expect(await plotWithout([patch], RESTORED_AGAIN)).toEqual([
      ...BELIEVED,
      "the client's request key-1, sent again, is accepted as pay_2",
      "a worker claims the charge of pay_2",
      "Stripe executes the find",
      "the worker hears of the find: absent; next: create",
      ...SECOND_IS_PAID,
      "=> two charges for key-1",
    ]);
  });

  test("before a refund, the money is given back twice", async () => {
    const patches = [
      {
        file: "src/domain/effect-decisions.ts",
        find: 'if (view.earlierRuns === "open") return effectWaiting(view, { reason: EARLIER_RUN_OPEN, note });',
        replace: "",
      },
      {
        file: "src/domain/charge-steps.ts",
        find: 'return view.earlierRuns === "open" && !budgetIsOver(view);',
        replace: "return false;",
      },
    ];
    expect(await plotWithout(patches, RESTORED_REFUND)).toEqual([
      "a worker claims the refund of pay_1, and marks its first call as about to be sent",
      "Stripe executes the refund: refunded",
      "time passes: the budget is over",
      "a backup from right after the request is put back",
      "a worker claims the refund of pay_1",
      "the worker hears nothing of the find_refund before its deadline: the answer is lost",
      "the client's refund key-2 is accepted",
      "a worker claims the refund of pay_1",
      "Stripe executes the find_refund",
      "the worker hears of the find_refund: absent; next: refund",
      "Stripe executes the refund: refunded",
      "=> Stripe has made re_2 twice",
    ]);
  });

  test("afterwards, what was told on a row's word alone stays told", async () => {
    const patch = {
      file: "src/domain/charge-decisions.ts",
      find: "return { ...notPerformed(view, reason, note), ...askedAboutAfterwards(view, reason) };",
      replace: "return notPerformed(view, reason, note);",
    };
    expect(await plotWithout([patch], RESTORED_AGAIN)).toEqual([
      ...BELIEVED,
      "=> pay_1 was proven to be without effect, and pi_1 is charged",
    ]);
  });
});

describe("without the rule that a database which recovers only asks", () => {
  const SENT_WHILE_RECOVERING = [
    "a backup from right after the request is put back",
    "a worker claims the charge of pay_1",
    "Stripe executes the find",
    "the worker hears of the find: absent; next: create",
    "=> create is sent while the database recovers",
  ];

  test("a create goes out before it is known what was sent", async () => {
    const patch = {
      file: "src/operations/ask-only.ts",
      find: "if (sends.has(name) && isRecovering())",
      replace: "if (sends.has(name) && isRecovering === undefined)",
    };
    expect(await plotWithout([patch], RECOVERED_ROW)).toEqual(SENT_WHILE_RECOVERING);
  });

  test("in the statement that marks a send, one goes out by a worker that has not looked", async () => {
    const patch = {
      file: "src/store/advance.ts",
      find: "and (not i.in_place_only or ${isInPlace(db, tells)})",
      replace: "",
    };
    expect(await plotWithout([patch], RECOVERED_ROW)).toEqual(SENT_WHILE_RECOVERING);
  });

  test("at the accept, a key whose rows are lost charges again once Stripe has forgotten it", async () => {
    const patch = {
      file: "src/operations/create-payment.ts",
      find: "const first = deps.recovery.isRecovering() ? null : await runFirst(deps, request);",
      replace: "const first = await runFirst(deps, request);",
    };
    const scenario = { ...RECOVERED_EMPTY, moments: [ACCEPTED, KEYS_PRUNED] };
    expect(await plotWithout([patch], scenario)).toEqual([
      ...PAID,
      "time passes: the provider may have removed its keys",
      "a backup from before the request is put back",
      "the client's request key-1 is accepted as pay_2",
      "the recovery ends: everything has had an answer",
      "a worker claims the charge of pay_2, and marks its first call as about to be sent",
      "Stripe executes the create, whose key it no longer knows",
      "the worker hears of the create: created; next: confirm",
      "Stripe executes the confirm, whose key it no longer knows: the card pays",
      "=> two charges for pay_1",
    ]);
  });

  test("at the accept of a refund, one whose row is lost is made again once Stripe has forgotten its key", async () => {
    const patch = {
      file: "src/operations/request-effect.ts",
      find: "  deps.recovery.refuseWhileRecovering();\n",
      replace: "",
    };
    expect(await plotWithout([patch], RECOVERED_REFUND)).toEqual([
      "the client's refund key-2 is accepted",
      "a worker claims the refund of pay_1, and marks its first call as about to be sent",
      "Stripe executes the refund: refunded",
      "time passes: the provider may have removed its keys",
      "a backup from before the request is put back",
      "the client's refund key-2 is accepted",
      "the recovery ends: everything has had an answer",
      "a worker claims the refund of pay_1, and marks its first call as about to be sent",
      "Stripe executes the refund, whose key it no longer knows: refunded",
      "=> Stripe has made re_1 twice",
    ]);
  });
});

describe("without the rules for keys whose record is lost", () => {
  const IN_ITS_SECOND_RUN = [
    "time passes: the budget is over",
    "a worker claims the charge of pay_1",
    "Stripe executes the find",
    "the worker hears of the find: absent",
    "the client's request key-1, sent again, is accepted as pay_2",
    "a worker claims the charge of pay_2",
    "Stripe executes the find",
    "the worker hears of the find: absent; next: create",
    "Stripe executes the create",
    "the worker hears of the create: created; next: confirm",
  ];
  const FROM_THE_FIRST = [
    "the recovery ends: everything has had an answer",
    "the client's request key-1 is accepted as pay_3",
    "a worker claims the charge of pay_3, and marks its first call as about to be sent",
    "Stripe executes the create",
    "the worker hears of the create: created; next: confirm",
    "Stripe executes the confirm: the card pays",
  ];

  test("at the accept, one that was paid in its second run begins with its first, and is charged again", async () => {
    const patch = {
      file: "src/store/accept.ts",
      find: "and place.in_place and (i.other_runs is not null or not place.has_recovered)",
      replace: "and place.in_place",
    };
    expect(await plotWithout([patch], RECOVERED_AGAIN)).toEqual([
      ...IN_ITS_SECOND_RUN,
      "Stripe executes the confirm: the card pays",
      "a backup from before the request is put back",
      "the recovery makes a payment again from pi_1",
      "a worker claims the charge of pay_of_pi_1",
      "Stripe executes the get",
      "the worker hears of the get: found, succeeded",
      ...FROM_THE_FIRST,
      "=> two charges for key-1",
    ]);
  });

  test("in the comparison, an object whose confirm is under way is left open, and pays beside another", async () => {
    const patch = {
      file: "src/domain/reconcile.ts",
      find: 'if (charge.status !== "created" || (isRestored && !isAbandoned)) {',
      replace: 'if (charge.status !== "created") {',
    };
    expect(await plotWithout([patch], RECOVERED_AGAIN)).toEqual([
      ...IN_ITS_SECOND_RUN,
      "a backup from before the request is put back",
      ...FROM_THE_FIRST,
      "a confirm that was still under way is executed: the card pays",
      "=> two charges for key-1",
    ]);
  });
});
