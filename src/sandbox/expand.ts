import type Stripe from "stripe";
import { renderBalanceTransaction } from "./balance-transactions.js";
import type { Call } from "./call.js";
import { namesOf } from "./parameters.js";
import { clientView } from "./payment-intent-object.js";
import { renderPaymentMethod } from "./payment-methods.js";

/** What goes out: the client's view for a publishable key, with `expand` applied where it was asked for. */
export function presented(call: Call, body: object): object {
  const view = call.caller.publishable ? clientView(body as Stripe.PaymentIntent) : body;
  if (call.params["expand"] === undefined) return view;
  const paths = namesOf(call.params, "expand").map((path) => path.split("."));
  return expanded(call, view, paths);
}

/** A path is followed from object to object, and through the objects of a list: `data.latest_charge.balance_transaction`. */
function expanded(call: Call, body: object, paths: readonly (readonly string[])[]): object {
  const byName = new Map<string, string[][]>();
  for (const [name, ...rest] of paths) {
    if (name === undefined) continue;
    byName.set(name, [...(byName.get(name) ?? []), ...(rest.length === 0 ? [] : [rest])]);
  }
  const members: Record<string, unknown> = { ...body };
  for (const [name, rest] of byName) {
    const value = members[name];
    const found =
      typeof value === "string" ? objectOf(call, name, value) : (value ?? memberOf(call, members, name));
    if (Array.isArray(found)) members[name] = found.map((each: object) => expanded(call, each, rest));
    else if (typeof found === "object" && found !== null) members[name] = expanded(call, found, rest);
  }
  return members;
}

/** The object that the member's id stands for; null where there is none, and the id stays. */
function objectOf(call: Call, name: string, id: string): object | null {
  const { realm } = call;
  switch (name) {
    case "latest_charge":
    case "charge":
      return realm.charges.get(id) ?? null;
    case "payment_intent":
      return realm.paymentIntents.get(id) ?? null;
    case "payment_method": {
      const method = realm.paymentMethods.get(id);
      return method === undefined ? null : renderPaymentMethod(method);
    }
    case "balance_transaction":
    case "failure_balance_transaction": {
      const stored = realm.tables.balance_transaction.get(id);
      return stored === undefined ? null : renderBalanceTransaction(stored, call.nowSeconds);
    }
    case "source":
      return (
        realm.charges.get(id) ??
        realm.tables.refund.get(id) ??
        realm.tables.dispute.get(id) ??
        realm.tables.payout.get(id) ??
        null
      );
    default:
      return null;
  }
}

/** A list that an object shows only when it is asked for: `refunds` of a charge (since 2022-11-15), the ten newest. */
function memberOf(call: Call, members: Readonly<Record<string, unknown>>, name: string): object | null {
  if (name !== "refunds" || members["object"] !== "charge") return null;
  const id = String(members["id"]);
  const all = call.realm.tables.refund.oldestFirst().filter((refund) => refund.charge === id);
  const data = all.reverse().slice(0, 10);
  return { object: "list", data, has_more: all.length > data.length, url: `/v1/charges/${id}/refunds` };
}
