import { createHmac } from "node:crypto";
import fc from "fast-check";
import Stripe from "stripe";
import { describe, expect, it } from "vitest";
import { verifyNotice } from "../../../../src/providers/stripe/webhook.js";

const SECRET = "whsec_scripted";
const OLD_SECRET = "whsec_rolled";
const NOW_MS = Date.parse("2026-11-29T12:00:00.400Z");
const NOW = Math.floor(NOW_MS / 1000);
const EVENT = {
  id: "evt_1",
  object: "event",
  type: "payment_intent.succeeded",
  livemode: false,
  data: { object: { id: "pi_1", metadata: { payment_attempt_id: "att_1", tenant_id: "ten_1" } } },
};
const BODY = JSON.stringify(EVENT);
const NOTICE = {
  eventId: "evt_1",
  type: "payment_intent.succeeded",
  livemode: false,
  subject: { type: "charge", objectId: "pi_1", attemptId: "att_1", tenantId: "ten_1" },
};

const bytes = (body: string) => new TextEncoder().encode(body);

/** The signature as docs.stripe.com/webhooks/signature describes it. */
function hmac(body: string | Uint8Array, { secret = SECRET, t = String(NOW) } = {}): string {
  return createHmac("sha256", secret).update(`${t}.`).update(body).digest("hex");
}

const signed = (body: string | Uint8Array, t = String(NOW)) => `t=${t},v1=${hmac(body, { t })}`;

function verify(header: string | string[] | null, { body = bytes(BODY), secrets = [SECRET] } = {}) {
  return verifyNotice(body, header, secrets, NOW_MS);
}

const accepted = { ok: true, notice: NOTICE };
const refused = (reason: string) => ({ ok: false, reason });
const GOOD = `v1=${hmac(BODY)}`;
const BAD = `v1=${"0".repeat(64)}`;

describe("a signature over the bytes", () => {
  it.each([
    ["odd white space", JSON.stringify(EVENT, null, 3).replaceAll("\n", "\r\n\t ")],
    ["escapes", BODY.replace("evt_1", "\\u0065vt\\u005f1").replaceAll("/", "\\/")],
    ["emoji", BODY.replace("{", '{"note":"café 🧾 ￼",')],
    ["a trailing newline", `${BODY}\n`],
    ["unsorted keys", JSON.stringify(Object.fromEntries(Object.entries(EVENT).reverse()))],
    ["200 KB", BODY.replace("{", `{"note":"${"x".repeat(200_000)}",`)],
    ["numbers that no double holds", BODY.replace("{", '{"n":12345678901234567890.10,"m":1E400,')],
    ["a member twice", BODY.replace("{", '{"id":"evt_0",')],
  ])("is accepted over %s, and refused over the same with one byte changed", (_what, body) => {
    const header = signed(body);
    expect(verify(header, { body: bytes(body) })).toEqual(accepted);
    const raw = bytes(body);
    for (const at of [0, Math.floor(raw.length / 2), raw.length - 1]) {
      const changed = raw.slice();
      changed[at] = (changed[at] ?? 0) ^ 1;
      expect(verify(header, { body: changed })).toEqual(refused("signature_mismatch"));
    }
    expect(verify(header, { body: raw.slice(0, -1) })).toEqual(refused("signature_mismatch"));
    expect(verify(header, { body: bytes(`${body} `) })).toEqual(refused("signature_mismatch"));
  });

  it("is not one over what the bytes decode to", () => {
    const raw = new Uint8Array([...bytes(BODY), 0xff]);
    const decoded = new TextDecoder().decode(raw);
    expect(verify(`t=${NOW},v1=${hmac(decoded)}`, { body: raw })).toEqual(refused("signature_mismatch"));
    expect(verify(`t=${NOW},v1=${hmac(raw)}`, { body: raw })).toEqual(refused("malformed"));
  });

  it("is what the official SDK makes", () => {
    const header = Stripe.webhooks.generateTestHeaderString({
      payload: BODY,
      secret: SECRET,
      timestamp: NOW,
    });
    expect(verify(header)).toEqual(accepted);
  });
});

describe("the signature header", () => {
  it.each([
    ["bad, then good", `t=${NOW},${BAD},${GOOD}`],
    ["good, then bad", `t=${NOW},${GOOD},${BAD}`],
    ["with an added v0", `t=${NOW},${GOOD},v0=${"1".repeat(64)}`],
    ["with the v0 first", `t=${NOW},v0=${hmac(BODY)},${GOOD}`],
    ["with the time last", `${GOOD},t=${NOW}`],
    ["with blanks after the commas", ` t=${NOW}, ${BAD}, ${GOOD} `],
    ["with an empty v1 beside the good one", `t=${NOW},v1=,${GOOD}`],
    ["with a short v1 beside the good one", `t=${NOW},v1=abcd,${GOOD}`],
    ["with a v1 that is not hex beside the good one", `t=${NOW},v1=${"z".repeat(64)},${GOOD}`],
    ["with words that mean nothing", `t=${NOW},,x,=,v1,${GOOD},v2=1`],
    ["as a list of one", [`t=${NOW},${GOOD}`]],
    ["as a list of its parts", [`t=${NOW}`, BAD, GOOD]],
    ["in upper case hex", `t=${NOW},v1=${hmac(BODY).toUpperCase()}`],
  ])("is accepted %s", (_what, header) => {
    expect(verify(header)).toEqual(accepted);
  });

  it.each([
    ["missing", null, "header_missing"],
    ["empty", "", "header_missing"],
    ["blank", "  ", "header_missing"],
    ["an empty list", [], "header_missing"],
    ["without a time", GOOD, "header_malformed"],
    ["with t=abc", `t=abc,${GOOD}`, "header_malformed"],
    ["with an empty t", `t=,${GOOD}`, "header_malformed"],
    ["with a negative t", `t=-${NOW},${GOOD}`, "header_malformed"],
    ["with a fraction", `t=${NOW}.0,${GOOD}`, "header_malformed"],
    ["with an endless t", `t=${"1".repeat(400)},${GOOD}`, "header_malformed"],
    ["with two different t", `t=${NOW},t=${NOW - 1},${GOOD}`, "header_malformed"],
    ["with the same t twice", `t=${NOW},t=${NOW},${GOOD}`, "header_malformed"],
    ["with two t, the good one last", `t=${NOW - 1},${GOOD},t=${NOW}`, "header_malformed"],
    ["twice", [`t=${NOW},${GOOD}`, `t=${NOW - 1},${GOOD}`], "header_malformed"],
    ["of nothing", "hello", "header_malformed"],
    ["without a v1", `t=${NOW}`, "signature_mismatch"],
    ["with a v0 alone", `t=${NOW},v0=${hmac(BODY)}`, "signature_mismatch"],
    ["with an empty v1", `t=${NOW},v1=`, "signature_mismatch"],
    ["with a short v1", `t=${NOW},v1=${hmac(BODY).slice(0, 62)}`, "signature_mismatch"],
    ["with a long v1", `t=${NOW},v1=${hmac(BODY)}00`, "signature_mismatch"],
    ["with a v1 that is not hex", `t=${NOW},v1=${"ä".repeat(64)}`, "signature_mismatch"],
    ["with a bad v1", `t=${NOW},${BAD}`, "signature_mismatch"],
    ["with another time than the signed one", `t=${NOW + 1},${GOOD}`, "signature_mismatch"],
    ["with V1", `t=${NOW},V1=${hmac(BODY)}`, "signature_mismatch"],
  ])("is refused %s", (_what, header, reason) => {
    expect(verify(header)).toEqual(refused(reason));
  });

  it("takes a time of up to 300 s, either way", () => {
    for (const offset of [-300, -299, 0, 299, 300]) {
      expect(verify(signed(BODY, String(NOW + offset)))).toEqual(accepted);
    }
    for (const offset of [-1_000_000, -301, 301, 1_000_000]) {
      expect(verify(signed(BODY, String(NOW + offset)))).toEqual(refused("outside_tolerance"));
    }
    expect(verify(signed(BODY, "0"))).toEqual(refused("outside_tolerance"));
  });

  it("says nothing of a time that is not signed", () => {
    expect(verify(`t=${NOW - 301},${GOOD}`)).toEqual(refused("signature_mismatch"));
  });

  it("takes a redelivery with a new time", () => {
    const first = signed(BODY, String(NOW - 200));
    expect(verify(first)).toEqual(accepted);
    expect(verify(signed(BODY, String(NOW)))).toEqual(accepted);
  });

  it("takes any of several secrets, and any of several signatures", () => {
    const byOld = `v1=${hmac(BODY, { secret: OLD_SECRET })}`;
    for (const secrets of [
      [SECRET, OLD_SECRET],
      [OLD_SECRET, SECRET],
      ["", OLD_SECRET],
    ]) {
      expect(verify(`t=${NOW},${byOld}`, { secrets })).toEqual(accepted);
      expect(verify(`t=${NOW},${BAD},${byOld}`, { secrets })).toEqual(accepted);
    }
    expect(verify(`t=${NOW},${byOld}`)).toEqual(refused("signature_mismatch"));
  });

  it("is never right without a secret, or by a blank one", () => {
    for (const blank of ["", " ", "\n"]) {
      const byBlank = `t=${NOW},v1=${hmac(BODY, { secret: blank })}`;
      expect(verify(byBlank, { secrets: [blank] })).toEqual(refused("secret_missing"));
      expect(verify(byBlank, { secrets: [SECRET, blank] })).toEqual(refused("signature_mismatch"));
    }
    expect(verify(signed(BODY), { secrets: [] })).toEqual(refused("secret_missing"));
  });

  it("never makes it throw", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.array(fc.string()), fc.constant(null)),
        fc.uint8Array(),
        (header, body) => {
          expect(verify(header, { body }).ok).toBe(false);
        },
      ),
    );
    fc.assert(
      fc.property(fc.uint8Array(), (body) => {
        expect(verify(`t=${NOW},v1=${hmac(body)}`, { body })).toEqual(refused("malformed"));
      }),
    );
    fc.assert(
      fc.property(fc.json(), (json) => {
        expect(verify(signed(json), { body: bytes(json) })).toEqual(refused("malformed"));
      }),
    );
  });
});
