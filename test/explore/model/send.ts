import type { ChargeView, Then } from "../../../src/domain/charge-change.js";
import type { PaymentProvider, ProviderCall, SendContext } from "../../../src/domain/provider.js";
import type { Ref } from "../refs.js";
import { agedMs } from "./aging.js";
import { sinceStart } from "./clock.js";
import type { Context } from "./context.js";
import type { Request } from "./request.js";
import type { Outcome } from "./wire.js";

/** What goes out next: made by the shipped code, and seen by a provider that only takes it down. */
export function requestOf(
  context: Context,
  view: ChargeView,
  then: Then,
  account: string | null,
  moment: number,
): Ref<Request> | null {
  if (then.type === "wait" || then.type === "end") return null;
  if (account === null) throw new Error("a worker without an account called the provider");
  const recorder = recorderOf(account, agedMs(context, context.atMs(moment), moment, "sent"));
  const { sendCall, askQuestion } = context.shipped;
  // Both hand on what the provider's method returns.
  const taken: unknown =
    then.type === "send" ? sendCall(recorder, view, then.call) : askQuestion(recorder, view, then.question);
  return context.refs.requests.of(taken as Request);
}

/** What the provider of src/operations/ask-only.ts says to a send while the database recovers; null: it lets it out. */
function answerInRecovery({ shipped }: Context, call: ProviderCall): Promise<Outcome> | null {
  const provider = shipped.askOnlyWhile(() => true, recorderOf("", 0), 1);
  const method = Reflect.get(provider, METHODS[call]) as (...given: unknown[]) => unknown;
  // What would go out is of no interest here.
  const taken = method(NO_SEND, NO_SEND, NO_SEND);
  return taken instanceof Promise ? (taken as Promise<Outcome>) : null;
}

const NO_SEND: SendContext = { idempotencyKey: "", resend: false };

const METHODS = {
  create: "createCharge",
  confirm: "confirmCharge",
  fence: "cancelCharge",
  capture: "captureCharge",
  cancel: "voidCharge",
  refund: "createRefund",
} as const satisfies Record<ProviderCall, keyof PaymentProvider>;

export function isKeptBack(context: Context, call: ProviderCall): boolean {
  return answerInRecovery(context, call) !== null;
}

/** What the worker hears of a call that is kept back. */
export function keptBack(context: Context, call: ProviderCall): Ref<Outcome> {
  return context.memos.outcome.later(`kept back ${call}`, async () => {
    const outcome = await answerInRecovery(context, call);
    if (outcome === null) throw new Error(`a ${call} is not kept back`);
    return context.refs.outcomes.of(outcome);
  });
}

function recorderOf(account: string, sentAtMs: number): PaymentProvider {
  const blank: Omit<Request, "call"> = {
    account,
    key: null,
    target: null,
    parameters: null,
    resend: false,
    attemptId: null,
    createdFromMs: null,
    sentAtMs,
  };
  const send = (
    call: ProviderCall,
    target: string | null,
    parameters: string | null,
    { idempotencyKey, resend }: SendContext,
  ): Request => ({ ...blank, call, target, parameters, key: idempotencyKey, resend });
  const recorder = {
    createCharge: (parameters: string, context: SendContext) => send("create", null, parameters, context),
    confirmCharge: (id: string, parameters: string, context: SendContext) =>
      send("confirm", id, parameters, context),
    cancelCharge: (id: string, context: SendContext) => send("fence", id, null, context),
    captureCharge: (id: string, parameters: string, context: SendContext) =>
      send("capture", id, parameters, context),
    voidCharge: (id: string, parameters: string, context: SendContext) =>
      send("cancel", id, parameters, context),
    createRefund: (parameters: string, context: SendContext) => send("refund", null, parameters, context),
    getCharge: (target: string): Request => ({ ...blank, call: "get", target }),
    getRefund: (target: string): Request => ({ ...blank, call: "get_refund", target }),
    findCharge: (sought: { attemptId: string; createdFrom: Date }): Request => ({
      ...blank,
      call: "find",
      attemptId: sought.attemptId,
      createdFromMs: sinceStart(sought.createdFrom.toISOString()),
    }),
    findRefund: (sought: { attemptId: string; chargeId: string }): Request => ({
      ...blank,
      call: "find_refund",
      target: sought.chargeId,
      attemptId: sought.attemptId,
    }),
  };
  return recorder as unknown as PaymentProvider;
}
