import type { Hono } from "hono";
import type Stripe from "stripe";
import { endAuthorization } from "./authorizations.js";
import type { Call } from "./call.js";
import { latestChargeOf } from "./charges.js";
import { readBody } from "./control-body.js";
import { closeDispute, contestDispute, openDispute, reinstateFunds, withdrawFunds } from "./disputes.js";
import { ControlError } from "./json-shape.js";
import { realmHolding, recordById } from "./objects.js";
import { cancelPaymentIntent, capturePaymentIntent } from "./payment-intent-operations.js";
import { payOut } from "./payouts.js";
import { createRefund } from "./refund-calls.js";
import { failRefund, requireRefundAction, succeedRefund, USUAL_FAILURE, withdrawRefund } from "./refunds.js";
import type { SandboxParts } from "./sandbox-parts.js";

/** How long a card refund can be called off in the dashboard, in test mode (docs.stripe.com/refunds#cancel-refund). */
const REFUND_CANCELABLE_SECONDS = 30 * 60;

/** Finds the object's account and mode, and lets `act` work there; what it changes is written down. */
type Acting = <T>(id: string, params: Record<string, string>, act: (call: Call) => T) => T;

/** What happens at the provider without a request of the merchant's: by the dashboard, a bank, or the provider itself. */
export function afterChargeRoutes(app: Hono, parts: SandboxParts): void {
  const { store, callFor } = parts;
  const acting: Acting = (id, params, act) => {
    const realm = realmHolding(store, id);
    if (realm === null) throw new ControlError(`there is no ${id}`, 404);
    try {
      return act(callFor(realm, id, params, false));
    } finally {
      store.commit();
    }
  };
  paymentIntentRoutes(app, parts, acting);
  refundRoutes(app, parts, acting);
  disputeRoutes(app, acting);
  app.post("/_sandbox/payouts", async (c) => {
    const body = await readBody(c);
    const account = body.string("account");
    const livemode = body.boolean("livemode");
    const currency = body.string("currency") ?? null;
    body.end();
    const payouts: Stripe.Payout[] = [];
    for (const realm of store.realms.values()) {
      if (account !== undefined && account !== realm.account) continue;
      if (livemode !== undefined && livemode !== realm.livemode) continue;
      payouts.push(...payOut({ ...callFor(realm, "", {}, false), requestId: null }, currency));
    }
    store.commit();
    return c.json(payouts);
  });
}

function paymentIntentRoutes(app: Hono, { store }: SandboxParts, acting: Acting): void {
  app.post("/_sandbox/payment_intents/:id/capture", async (c) => {
    const body = await readBody(c);
    const amount = body.integer("amount", 1);
    body.end();
    const id = c.req.param("id");
    const params: Record<string, string> = amount === undefined ? {} : { amount_to_capture: String(amount) };
    acting(id, params, capturePaymentIntent);
    return c.json(recordById(store, id));
  });
  app.post("/_sandbox/payment_intents/:id/cancel", (c) => {
    const id = c.req.param("id");
    acting(id, {}, cancelPaymentIntent);
    return c.json(recordById(store, id));
  });
  app.post("/_sandbox/payment_intents/:id/refund", async (c) => {
    const body = await readBody(c);
    const amount = body.integer("amount", 1);
    body.end();
    const id = c.req.param("id");
    const params: Record<string, string> = amount === undefined ? {} : { amount: String(amount) };
    return c.json(acting(id, { payment_intent: id, ...params }, createRefund));
  });
  app.post("/_sandbox/payment_intents/:id/expire", (c) => {
    const id = c.req.param("id");
    acting(id, {}, (call) => {
      const paymentIntent = call.realm.paymentIntents.get(id);
      if (paymentIntent?.status !== "requires_capture") throw new ControlError(`${id} holds nothing`, 409);
      endAuthorization({ ...call, requestId: null }, paymentIntent);
    });
    return c.json(recordById(store, id));
  });
  app.post("/_sandbox/payment_intents/:id/dispute", async (c) => {
    const body = await readBody(c);
    const input = {
      amount: body.integer("amount", 1),
      reason: body.string("reason") ?? "fraudulent",
      inquiry: body.boolean("inquiry") ?? false,
      withdraw: body.boolean("withdraw"),
    };
    body.end();
    const id = c.req.param("id");
    const dispute = acting(id, {}, (call) => {
      const paymentIntent = call.realm.paymentIntents.get(id);
      const charge = paymentIntent === undefined ? undefined : latestChargeOf(call, paymentIntent);
      if (charge === undefined) throw new ControlError(`${id} has no charge to dispute`, 409);
      return openDispute({ ...call, requestId: null }, charge, input);
    });
    return c.json(dispute);
  });
}

function refundRoutes(app: Hono, { store }: SandboxParts, acting: Acting): void {
  const withRefund = (id: string, act: (call: Call, refund: Stripe.Refund) => Stripe.Refund): Stripe.Refund =>
    acting(id, {}, (call) => {
      const refund = call.realm.tables.refund.get(id);
      if (refund === undefined) throw new ControlError(`there is no refund ${id}`, 404);
      if (refund.balance_transaction === null) {
        throw new ControlError(`${id} is the release of an authorisation, which is over`, 409);
      }
      return act({ ...call, requestId: null }, refund);
    });
  app.get("/_sandbox/refunds", (c) => {
    const wanted = c.req.query("payment_intent");
    const refunds = [...store.realms.values()].flatMap((realm) => realm.tables.refund.oldestFirst());
    return c.json(refunds.filter((refund) => wanted === undefined || refund.payment_intent === wanted));
  });
  app.post("/_sandbox/refunds/:id/settle", async (c) => {
    const body = await readBody(c);
    const outcome = body.oneOf("outcome", ["succeed", "fail", "require_action"] as const);
    const reason = body.string("failure_reason") ?? USUAL_FAILURE;
    body.end();
    if (outcome === undefined) throw new ControlError("outcome must be succeed, fail or require_action");
    const settled = withRefund(c.req.param("id"), (call, refund) => {
      if (refund.status !== "pending" && refund.status !== "requires_action") throw isElsewhere(refund);
      if (outcome === "fail") return failRefund(call, refund, reason);
      return outcome === "succeed" ? succeedRefund(call, refund) : requireRefundAction(call, refund);
    });
    return c.json(settled);
  });
  app.post("/_sandbox/refunds/:id/fail", async (c) => {
    const body = await readBody(c);
    const reason = body.string("failure_reason") ?? USUAL_FAILURE;
    body.end();
    const failed = withRefund(c.req.param("id"), (call, refund) => {
      if (refund.status === "failed" || refund.status === "canceled") throw isElsewhere(refund);
      return failRefund(call, refund, reason);
    });
    return c.json(failed);
  });
  app.post("/_sandbox/refunds/:id/cancel", (c) => {
    const canceled = withRefund(c.req.param("id"), (call, refund) => {
      const young = call.nowSeconds - refund.created <= REFUND_CANCELABLE_SECONDS;
      const open = refund.status === "pending" || refund.status === "requires_action";
      if (!open && !(refund.status === "succeeded" && young)) throw isElsewhere(refund);
      return withdrawRefund(call, refund);
    });
    return c.json(canceled);
  });
}

function isElsewhere(refund: Stripe.Refund): ControlError {
  return new ControlError(`${refund.id} is ${String(refund.status)}`, 409);
}

function disputeRoutes(app: Hono, acting: Acting): void {
  const withDispute = (id: string, act: (call: Call, dispute: Stripe.Dispute) => Stripe.Dispute) =>
    acting(id, {}, (call) => {
      const dispute = call.realm.tables.dispute.get(id);
      if (dispute === undefined) throw new ControlError(`there is no dispute ${id}`, 404);
      return act({ ...call, requestId: null }, dispute);
    });
  app.post("/_sandbox/disputes/:id/contest", (c) => c.json(withDispute(c.req.param("id"), contestDispute)));
  app.post("/_sandbox/disputes/:id/withdraw", (c) => c.json(withDispute(c.req.param("id"), withdrawFunds)));
  app.post("/_sandbox/disputes/:id/reinstate", async (c) => {
    const body = await readBody(c);
    const returnFee = body.boolean("return_fee") ?? false;
    body.end();
    return c.json(
      withDispute(c.req.param("id"), (call, dispute) => reinstateFunds(call, dispute, returnFee)),
    );
  });
  app.post("/_sandbox/disputes/:id/close", async (c) => {
    const body = await readBody(c);
    const outcome = body.oneOf("outcome", ["won", "lost"] as const);
    const options = {
      reinstate: body.boolean("reinstate") ?? true,
      returnFee: body.boolean("return_fee") ?? false,
    };
    body.end();
    if (outcome === undefined) throw new ControlError("outcome must be won or lost");
    return c.json(
      withDispute(c.req.param("id"), (call, dispute) => closeDispute(call, dispute, outcome, options)),
    );
  });
}
