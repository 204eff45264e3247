import { describe, expect, it } from "vitest";
import { readNotice } from "../../../../src/providers/stripe/notice.js";

type Json = Record<string, unknown>;

const bytes = (text: string) => new TextEncoder().encode(text);

function event(type: string, object: unknown, changes: Json = {}): Uint8Array {
  const whole = {
    id: "evt_1",
    object: "event",
    api_version: "2026-10-28.endive",
    created: 1_796_000_000,
    type,
    livemode: false,
    data: { object },
    request: { id: "req_1", idempotency_key: null },
    ...changes,
  };
  return bytes(JSON.stringify(whole));
}

const subjectOf = (type: string, object: unknown) => readNotice(event(type, object))?.subject;

const MARKS = { payment_attempt_id: "att_1", tenant_id: "ten_1" };
const intent = (changes: Json = {}): Json => ({
  id: "pi_1",
  object: "payment_intent",
  metadata: MARKS,
  ...changes,
});
const CHARGE = { type: "charge", objectId: "pi_1", attemptId: "att_1", tenantId: "ten_1" };

describe("what a notice is about", () => {
  it.each([
    "created",
    "processing",
    "requires_action",
    "amount_capturable_updated",
    "succeeded",
    "payment_failed",
    "canceled",
    "partially_funded",
    "something_new",
  ])("payment_intent.%s: the object and whose it says it is", (what) => {
    expect(subjectOf(`payment_intent.${what}`, intent())).toEqual(CHARGE);
  });

  it.each([
    [{}, null, null],
    [null, null, null],
    [undefined, null, null],
    [{ payment_attempt_id: 7, tenant_id: ["ten_1"] }, null, null],
    [{ payment_attempt_id: "", tenant_id: "ten_1" }, null, "ten_1"],
    [{ payment_attempt_id: "att\u0000_1", tenant_id: "ten 1" }, null, null],
    [{ payment_attempt_id: "a".repeat(256), tenant_id: "größer" }, null, null],
  ])("has nobody's marks in %o, unless they are plain texts", (metadata, attemptId, tenantId) => {
    expect(subjectOf("payment_intent.succeeded", intent({ metadata }))).toEqual({
      type: "charge",
      objectId: "pi_1",
      attemptId,
      tenantId,
    });
  });

  it.each(["succeeded", "captured", "refunded", "updated", "failed", "expired", "pending"])(
    "charge.%s: the PaymentIntent that it is of, whatever marks it carries",
    (what) => {
      for (const paymentIntent of ["pi_1", { id: "pi_1", object: "payment_intent" }]) {
        const object = { id: "ch_1", object: "charge", payment_intent: paymentIntent, metadata: MARKS };
        expect(subjectOf(`charge.${what}`, object)).toEqual({ ...CHARGE, attemptId: null, tenantId: null });
      }
    },
  );

  it("charge.* without a PaymentIntent: none of ours", () => {
    for (const paymentIntent of [null, undefined, ""]) {
      const object = { id: "ch_1", object: "charge", payment_intent: paymentIntent };
      expect(subjectOf("charge.succeeded", object)).toEqual({ type: "other", objectId: "ch_1" });
    }
  });

  it.each(["refund.created", "refund.updated", "refund.failed", "charge.refund.updated"])(
    "%s: the refund, and the charge object that it names",
    (type) => {
      const refund = { id: "re_1", object: "refund", charge: "ch_1", payment_intent: "pi_1" };
      expect(subjectOf(type, refund)).toEqual({ type: "refund", objectId: "re_1", chargeId: "pi_1" });
      expect(subjectOf(type, { id: "re_1" })).toEqual({ type: "refund", objectId: "re_1", chargeId: null });
    },
  );

  it.each(["created", "updated", "closed", "funds_withdrawn", "funds_reinstated"])(
    "charge.dispute.%s: the dispute, and the charge object that it names",
    (what) => {
      const dispute = { id: "dp_1", object: "dispute", charge: "ch_1", payment_intent: { id: "pi_1" } };
      const about = { type: "dispute", objectId: "dp_1" };
      expect(subjectOf(`charge.dispute.${what}`, dispute)).toEqual({ ...about, chargeId: "pi_1" });
      const bare = { id: "dp_1", payment_intent: null };
      expect(subjectOf(`charge.dispute.${what}`, bare)).toEqual({ ...about, chargeId: null });
    },
  );

  it("payout.paid and payout.reconciliation_completed: the payout; of others nothing follows", () => {
    const payout = { id: "po_1", object: "payout" };
    for (const type of ["payout.paid", "payout.reconciliation_completed"]) {
      expect(subjectOf(type, payout)).toEqual({ type: "payout", objectId: "po_1" });
      expect(subjectOf(type, { ...payout, automatic: true })).toMatchObject({ type: "payout" });
      expect(subjectOf(type, { ...payout, automatic: false })).toEqual({ type: "other", objectId: "po_1" });
    }
    for (const type of ["payout.created", "payout.updated", "payout.failed"]) {
      expect(subjectOf(type, payout)).toEqual({ type: "other", objectId: "po_1" });
    }
  });

  it.each([
    ["account.updated", { id: "acct_1" }, "acct_1"],
    ["balance.available", { object: "balance", available: [] }, ""],
    ["something.new.entirely", { id: 7 }, ""],
    ["payment_intents.succeeded", intent(), "pi_1"],
    ["setup_intent.succeeded", { id: "seti_1", payment_intent: "pi_1" }, "seti_1"],
    ["invoice.paid", { id: "in_1", payment_intent: "pi_1" }, "in_1"],
  ])("%s: nothing that is followed", (type, object, objectId) => {
    expect(subjectOf(type, object)).toEqual({ type: "other", objectId });
  });

  it("is the same in both shapes, in any version, with members that nobody knows", () => {
    const older = intent({ charges: { object: "list", data: [{ id: "ch_1" }], has_more: false } });
    const newer = intent({ latest_charge: "ch_1", something_new: { deep: [1] } });
    const notices = [
      readNotice(event("payment_intent.succeeded", older, { api_version: "2017-08-15", request: "req_1" })),
      readNotice(event("payment_intent.succeeded", newer, { api_version: "2031-01-01.zinnia", novel: {} })),
      readNotice(event("payment_intent.succeeded", newer, { api_version: null, pending_webhooks: 1 })),
    ];
    for (const notice of notices) {
      expect(notice).toEqual({
        eventId: "evt_1",
        type: "payment_intent.succeeded",
        livemode: false,
        subject: CHARGE,
      });
    }
  });

  it("keeps the mode apart", () => {
    expect(readNotice(event("payment_intent.succeeded", intent(), { livemode: true }))?.livemode).toBe(true);
  });
});

describe("a body that is no event", () => {
  it.each([
    ["nothing", ""],
    ["half a body", '{"id":"evt_1"'],
    ["a byte order mark", `\ufeff${new TextDecoder().decode(event("refund.created", { id: "re_1" }))}`],
    ["a list", "[]"],
    ["null", "null"],
    ["a text", '"evt_1"'],
    ["10 000 brackets", "[".repeat(10_000)],
    ["an event without its object", '{"id":"evt_1","type":"a.b","livemode":false,"data":{}}'],
    ["an event whose object is a list", '{"id":"evt_1","type":"a.b","livemode":false,"data":{"object":[]}}'],
    ["an event whose object is an id", '{"id":"evt_1","type":"a.b","livemode":false,"data":{"object":"x"}}'],
    ["an event without data", '{"id":"evt_1","type":"a.b","livemode":false}'],
  ])("is none: %s", (_what, text) => {
    expect(readNotice(bytes(text))).toBeNull();
  });

  it.each([
    ["id", undefined],
    ["id", ""],
    ["id", 7],
    ["id", "evt\u0000"],
    ["id", "e".repeat(256)],
    ["type", undefined],
    ["type", null],
    ["type", "refund created"],
    ["livemode", undefined],
    ["livemode", "false"],
    ["livemode", 0],
  ])("is none with %s as %o", (member, value) => {
    expect(readNotice(event("refund.created", { id: "re_1" }, { [member]: value }))).toBeNull();
  });

  it.each(["payment_intent.succeeded", "refund.created", "charge.dispute.created", "payout.paid"])(
    "is none where the object of %s has no plain id",
    (type) => {
      for (const id of [undefined, null, "", 7, "pi 1", "pi_\u0000"]) {
        expect(readNotice(event(type, { id }))).toBeNull();
      }
    },
  );

  it("is none in another encoding", () => {
    const utf16 = Buffer.from(new TextDecoder().decode(event("refund.created", { id: "re_1" })), "utf16le");
    expect(readNotice(utf16)).toBeNull();
    const latin1 = Buffer.from(
      new TextDecoder().decode(event("refund.created", { id: "re_1", note: "é" })),
      "latin1",
    );
    expect(readNotice(latin1)).toBeNull();
  });

  it("takes members of an object's prototype for what they are: absent", () => {
    const text = '{"__proto__":{"id":"evt_1"},"type":"a.b","livemode":false,"data":{"object":{}}}';
    expect(readNotice(bytes(text))).toBeNull();
  });
});
