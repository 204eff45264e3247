import { describe, expect, test, vi } from "vitest";
import { plotWithout } from "./explored.js";
import { thePatchedCode } from "./patched.js";
import { ONE_ORDER, OTHER_CREDENTIAL, RESTORED_EMPTY, RESTORED_ROW } from "./scenarios.js";

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
const PAID = [...CREATED_AND_CONFIRMED, "Stripe executes the confirm: the card pays"] as const;
const SECOND_IS_PAID = [
  "a worker claims the charge of pay_2, and marks its first call as about to be sent",
  "Stripe executes the create",
  "the worker hears of the create: created; next: confirm",
  "Stripe executes the confirm: the card pays",
] as const;

test("without the cancel after a decline, the customer pays an object that nobody looks at any more", async () => {
  const patch = {
    file: "src/domain/charge-answers.ts",
    find: "const hasObject = view.attempt.providerPaymentId !== null;",
    replace: "const hasObject = false;",
  };
  expect(await plotWithout([patch], ONE_ORDER)).toEqual([
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
    expect(await plotWithout([patch], ONE_ORDER)).toEqual([
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
      find: "from fresh where merchant_order_id is not null\n       order by",
      replace: "from fresh where false\n       order by",
    };
    expect(await plotWithout([patch], ONE_ORDER)).toEqual([
      ...PAID,
      "the client's request key-2 is accepted as pay_2",
      ...SECOND_IS_PAID,
      "=> two charges for order-1",
    ]);
  });
});

test("without derived ids, a key whose rows are lost charges again", async () => {
  const file = "src/operations/attempt-id.ts";
  const patches = [
    { file, find: "export function attemptIdOf(", replace: "let drawn = 0;\nexport function attemptIdOf(" },
    { file, find: "name.key, run]);", replace: "name.key, run, (drawn += 1)]);" },
  ];
  expect(await plotWithout(patches, RESTORED_EMPTY)).toEqual([
    ...PAID,
    "a backup from before the request is put back",
    "the client's request key-1 is accepted as pay_2",
    ...SECOND_IS_PAID,
    "=> two charges for key-1",
  ]);
});

test("without the account check, a worker with another credential charges through another account", async () => {
  const patch = {
    file: "src/domain/charge-steps.ts",
    find: 'if (own && sameMode) return "none";',
    replace: 'if (own || sameMode) return "none";',
  };
  expect(await plotWithout([patch], OTHER_CREDENTIAL)).toEqual([
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
    expect(await plotWithout([patch], RESTORED_ROW)).toEqual([
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
    expect(await plotWithout([patch], RESTORED_ROW)).toEqual([
      ...PAID,
      "time passes: the budget has been over for long",
      "a backup from right after the request is put back",
      "a worker claims the charge of pay_1",
      "the worker hears nothing of the find before its deadline: the answer is lost",
      "=> pay_1 was proven to be without effect, and pi_1 is charged",
    ]);
  });
});

test("a patch that no longer fits its source is refused", async () => {
  const patch = { file: "src/domain/charge-change.ts", find: "no such text", replace: "" };
  await expect(thePatchedCode([patch])).rejects.toThrow("holds the text to be replaced 0 times");
});
