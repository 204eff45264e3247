import { describe, expect, test } from "vitest";
import { type AttemptReference, judgeCharge, judgeRefund } from "../../../src/domain/provider-event.js";

const OWNER: AttemptReference = {
  tenantId: "ten_1",
  id: "att_1",
  paymentId: "pay_1",
  kind: "charge",
  livemode: false,
  objectId: "pi_1",
};
const MARKED: AttemptReference = { ...OWNER, objectId: null };

function charge(attemptId: string | null, tenantId: string | null) {
  return { type: "charge", objectId: "pi_1", attemptId, tenantId } as const;
}

describe("a charge object that is told of", () => {
  test.each<[string, Parameters<typeof judgeCharge>, string]>([
    ["known by its id, with its own marker", [charge("att_1", "ten_1"), false, OWNER, null], "nudge"],
    ["known by its id, without a marker", [charge(null, null), false, OWNER, null], "nudge"],
    [
      "known by its id, marked for another attempt",
      [charge("att_2", "ten_1"), false, OWNER, null],
      "foreign",
    ],
    ["known by its id, marked for another tenant", [charge("att_1", "ten_2"), false, OWNER, null], "foreign"],
    ["known by its id, half marked for another", [charge(null, "ten_2"), false, OWNER, null], "foreign"],
    ["known by its id, of the other mode", [charge("att_2", "ten_2"), true, OWNER, null], "other_mode"],
    ["of an attempt that has no object yet", [charge("att_1", "ten_1"), false, null, MARKED], "nudge"],
    ["of an attempt that got it meanwhile", [charge("att_1", "ten_1"), false, null, OWNER], "nudge"],
    [
      "of an attempt that has another",
      [charge("att_1", "ten_1"), false, null, { ...OWNER, objectId: "pi_2" }],
      "stray",
    ],
    ["of an attempt of the other mode", [charge("att_1", "ten_1"), true, null, MARKED], "other_mode"],
    ["of an attempt that is not known", [charge("att_1", "ten_1"), false, null, null], "unknown"],
    [
      "marked for what is no charge",
      [charge("att_1", "ten_1"), false, null, { ...MARKED, kind: "refund" }],
      "unknown",
    ],
    ["without a marker and not known", [charge(null, null), false, null, null], "not_ours"],
    ["with half a marker and not known", [charge("att_1", null), false, null, null], "not_ours"],
  ])("%s", (_, given, verdict) => {
    expect(judgeCharge(...given).type).toBe(verdict);
  });
});

const REFUND: AttemptReference = { ...OWNER, id: "att_r", kind: "refund" };

describe("a refund that is told of", () => {
  const ours = { attemptId: "att_r", tenantId: "ten_1" };
  const outside = { attemptId: null, tenantId: null };

  test.each<[string, Parameters<typeof judgeRefund>, string]>([
    ["ours", [ours, false, OWNER, REFUND], "nudge"],
    ["made outside", [outside, false, OWNER, null], "outside"],
    ["of somebody else's charge", [outside, false, null, null], "not_ours"],
    ["of somebody else's charge, with our marker", [ours, false, null, REFUND], "not_ours"],
    ["of the other mode", [ours, true, OWNER, REFUND], "other_mode"],
    ["made outside, of the other mode", [outside, true, OWNER, null], "other_mode"],
    ["marked for another tenant", [{ ...ours, tenantId: "ten_2" }, false, OWNER, REFUND], "foreign"],
    ["marked without a tenant", [{ ...ours, tenantId: null }, false, OWNER, null], "foreign"],
    ["marked for another payment", [ours, false, OWNER, { ...REFUND, paymentId: "pay_2" }], "foreign"],
    ["marked for a charge", [ours, false, OWNER, { ...REFUND, kind: "charge" }], "foreign"],
    ["marked for an attempt that is not known", [ours, false, OWNER, null], "unknown"],
  ])("%s", (_, given, verdict) => {
    expect(judgeRefund(...given).type).toBe(verdict);
  });
});
