import type { Call } from "./call.js";

/** Names of the calls, as fault rules and the request log use them. */
export const CALL_NAMES = [
  "payment_intents.create",
  "payment_intents.confirm",
  "payment_intents.update",
  "payment_intents.cancel",
  "payment_intents.capture",
  "payment_intents.retrieve",
  "payment_intents.list",
  "payment_intents.search",
  "charges.retrieve",
  "refunds.create",
  "refunds.update",
  "refunds.cancel",
  "refunds.retrieve",
  "refunds.list",
  "disputes.retrieve",
  "disputes.list",
  "balance_transactions.retrieve",
  "balance_transactions.list",
  "payouts.retrieve",
  "payouts.list",
  "payment_methods.retrieve",
  "events.list",
  "events.retrieve",
  "account.retrieve",
] as const;
export type CallName = (typeof CALL_NAMES)[number];

export function isCallName(name: string): name is CallName {
  return CALL_NAMES.some((call) => call === name);
}

export interface Operation {
  readonly name: CallName;
  readonly method: "GET" | "POST";
  /** Path below `/v1/`; `:id` is the object's id. */
  readonly path: string;
  readonly known: ReadonlySet<string>;
  /** Open to a publishable key that shows the object's client secret. */
  readonly client: boolean;
  /** The object that a POST without an id in its path locks, by its id. */
  readonly locks?: (call: Pick<Call, "params" | "realm">) => string | null;
  readonly run: (call: Call) => object;
}

/** Parameter names, given as words. */
export function names(...groups: string[]): ReadonlySet<string> {
  return new Set(groups.flatMap((group) => group.split(" ")));
}
