import { expect, test } from "vitest";
import { showPayment } from "../../src/operations/show-payment.js";
import { documentOf, pay } from "../support/harness.js";
import { useStage } from "../support/stage.js";

const stage = useStage();

test("the operator sees a payment of any tenant with its whole timeline, oldest first", async () => {
  const harness = await stage.start();
  const { id } = documentOf(await pay(harness));
  const shown = await showPayment(harness.deps, id);
  expect(shown?.payment).toMatchObject({ id, status: "succeeded", tenantId: harness.caller.tenantId });
  expect(shown?.timeline.map(({ kind, from, to, call }) => ({ kind, from, to, call }))).toEqual([
    { kind: "transition", from: null, to: "processing", call: null },
    { kind: "send", from: null, to: null, call: "create" },
    { kind: "transition", from: "processing", to: "succeeded", call: "confirm" },
  ]);
  expect(shown?.timeline.slice(1).every((entry) => entry.providerRequestId?.startsWith("req_"))).toBe(true);
});

test("a payment that does not exist is not shown", async () => {
  const harness = await stage.start();
  expect(await showPayment(harness.deps, "pay_00000000000000000000000000000000")).toBeNull();
});
