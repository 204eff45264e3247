import { describe, expect, it } from "vitest";
import { getPayment } from "../../src/operations/read-payments.js";
import { authorized, bodyOf, capture, outcomeOf, paid, refund, untilRefund } from "../support/effects.js";
import { newKey } from "../support/harness.js";
import { HASTY, useStage } from "../support/stage.js";

const stage = useStage();

describe("a refund", () => {
  it("gives back what is left where it says no amount, with an explicit amount at the provider", async () => {
    const harness = await stage.start();
    const id = await paid(harness);
    expect(bodyOf(await refund(harness, id, 2_000))).toMatchObject({ amount: 2_000, status: "succeeded" });
    const rest = await refund(harness, id);
    expect(outcomeOf(rest)).toBe("201");
    expect(bodyOf(rest)).toMatchObject({ amount: 8_000, payment_id: id });
    expect(outcomeOf(await refund(harness, id))).toBe("422 amount_too_large");
    const log = await harness.sandbox.control.listRequests({});
    const amounts = log
      .filter((entry) => entry.call === "refunds.create")
      .map((entry) => entry.parameters["amount"]);
    expect(amounts).toEqual(["2000", "8000"]);
    expect(await getPayment(harness.deps, harness.caller, id)).toMatchObject({
      amountRefunded: 10_000,
      status: "succeeded",
    });
  });

  it("of a payment that is not paid is refused without a call", async () => {
    const harness = await stage.start();
    const id = await authorized(harness);
    expect(outcomeOf(await refund(harness, id))).toBe("409 invalid_state");
    await capture(harness, id, 6_000);
    expect(outcomeOf(await refund(harness, id, 6_001))).toBe("422 amount_too_large");
  });

  it("sent ten times at once is accepted as far as the money goes, and no further", async () => {
    const harness = await stage.start();
    const other = await harness.another();
    const id = await paid(harness);
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, at) =>
        refund(harness, id, 1_500, { deps: at % 2 === 0 ? harness.deps : other.deps }),
      ),
    );
    const outcomes = answers.map(outcomeOf).toSorted();
    expect(outcomes.filter((outcome) => outcome === "201")).toHaveLength(6);
    expect(outcomes.filter((outcome) => outcome === "422 amount_too_large")).toHaveLength(4);
    expect(await getPayment(harness.deps, harness.caller, id)).toMatchObject({ amountRefunded: 9_000 });
  });

  it("whose answer is lost is found in the list by its attempt, and made once", async () => {
    const harness = await stage.start({ env: HASTY });
    const id = await paid(harness);
    await harness.sandbox.control.addFault({
      match: { call: "refunds.create" },
      fault: { type: "reset", effect: "applied" },
      times: 1,
    });
    expect(outcomeOf(await refund(harness, id, 3_000))).toBe("201");
    const log = await harness.sandbox.control.listRequests({});
    expect(log.filter((entry) => entry.call === "refunds.create")).toHaveLength(1);
  });

  it("that is pending is followed until the provider says its end", async () => {
    const harness = await stage.start();
    const id = await paid(harness, { input: { payment_method: "pm_card_pendingRefund" } });
    const key = newKey();
    const answer = await refund(harness, id, 3_000, { waitMs: 0, key });
    expect(bodyOf(answer)).toMatchObject({ status: "processing" });
    const [made] = await harness.sandbox.control.listRefunds();
    await harness.sandbox.control.bank.settleRefund(made?.id ?? "", "succeed");
    await untilRefund(harness, String(bodyOf(answer)["id"]), "succeeded");
    expect(outcomeOf(await refund(harness, id, 3_000, { key }))).toBe("201");
  });
});
