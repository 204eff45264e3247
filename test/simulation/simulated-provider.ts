import type { PaymentInput } from "../../src/domain/payment.js";
import type {
  AccountOutcome,
  DisputeLookupOutcome,
  EffectInput,
  LookupOutcome,
  PaymentProvider,
  PayoutLookupOutcome,
  PreparedCharge,
  RefundLookupOutcome,
  RefundSendOutcome,
  SendContext,
  SendOutcome,
} from "../../src/domain/provider.js";
import { EPOCH_MS } from "./host.js";
import type { Network } from "./network.js";
import {
  type Arrival,
  chargeOf,
  disputeOf,
  evidenceOf,
  refundOf,
  type Sent,
  sendOutcome,
  unansweredOf,
} from "./port-answers.js";
import { type ListedEvents, listsOf, pageOf } from "./provider-lists.js";
import type { ProviderModel } from "./provider-model.js";
import {
  CURRENCY,
  type Intent,
  type Post,
  type SimulatedRefund,
  type WireAnswer,
} from "./provider-objects.js";
import type { Owner } from "./scheduler.js";
import type { WireLog } from "./wire-log.js";

export interface ProviderParts {
  readonly owner: Owner;
  /** Whose credential the process has. */
  readonly account: string;
  readonly network: Network;
  readonly model: ProviderModel;
  readonly log: WireLog;
  readonly nowMs: () => number;
  /** Events that the provider has given up. */
  readonly events: ListedEvents;
  /** A name that no other request has. */
  readonly nextRequest: () => string;
  /** Told of every send before it goes out; whether the process cannot know yet that rows were lost. */
  readonly sending: (key: string) => "unaware" | "aware";
}

interface Reference {
  readonly attemptId: string;
  readonly tenantId: string;
}

/** The port of one process: calls of the simulated provider over the simulated network. */
export function simulatedProvider(parts: ProviderParts): PaymentProvider {
  const { model } = parts;
  const asks = asksOf(parts);
  return {
    name: "stripe",
    livemode: false,
    credentialDigest: `credential of ${parts.account}`,
    account: () => asks.account(),
    prepareCharge,
    prepareEffect,
    createCharge: (parameters, context) => {
      const { attemptId } = JSON.parse(parameters) as Reference;
      return send(
        parts,
        { call: "create", intentId: null, parameters },
        context,
        attemptId,
      ) as Promise<SendOutcome>;
    },
    confirmCharge: (intentId, _parameters, context) =>
      onIntent(parts, "confirm", intentId, "", context, false),
    cancelCharge: (intentId, context) => onIntent(parts, "cancel", intentId, "", context, false),
    captureCharge: (intentId, parameters, context) =>
      onIntent(parts, "capture", intentId, parameters, context, true),
    voidCharge: (intentId, parameters, context) =>
      onIntent(parts, "cancel", intentId, parameters, context, true),
    createRefund: (parameters, context) => {
      const { attemptId, intentId } = JSON.parse(parameters) as Reference & { intentId: string };
      return send(
        parts,
        { call: "refund", intentId, parameters },
        context,
        attemptId,
      ) as Promise<RefundSendOutcome>;
    },
    getCharge: asks.getCharge,
    findCharge: asks.findCharge,
    getRefund: asks.getRefund,
    findRefund: asks.findRefund,
    getDispute: asks.getDispute,
    getPayout: asks.getPayout,
    ...listsOf(model, parts.account, parts.events, async (about, read) => {
      let items: ReturnType<typeof read> = [];
      const arrival = await parts.network.get(parts.owner, about, () => {
        items = read();
        return NOTHING;
      });
      return pageOf(arrival, items);
    }),
  };
}

function prepareCharge(input: PaymentInput, { attemptId, tenantId }: Reference): PreparedCharge {
  const { amount, payment_method: card } = input;
  const manual = input.capture_method === "manual";
  return { ok: true, parameters: JSON.stringify({ amount, card, manual, attemptId, tenantId }) };
}

function prepareEffect(input: EffectInput, { attemptId, tenantId }: Reference): PreparedCharge {
  switch (input.call) {
    case "capture":
      return { ok: true, parameters: JSON.stringify({ amount: input.amount }) };
    case "cancel":
      return { ok: true, parameters: "" };
    case "refund": {
      const { chargeId: intentId, amount } = input;
      return { ok: true, parameters: JSON.stringify({ intentId, amount, attemptId, tenantId }) };
    }
  }
}

function onIntent(
  parts: ProviderParts,
  call: Post["call"],
  intentId: string,
  parameters: string,
  context: SendContext,
  isEffect: boolean,
): Promise<SendOutcome> {
  return send(parts, { call, intentId, parameters }, context, intentId, isEffect) as Promise<SendOutcome>;
}

/** `about`: what a question must be about to tell what became of this send. */
async function send(
  parts: ProviderParts,
  sent: Pick<Post, "call" | "intentId" | "parameters">,
  { idempotencyKey: key, resend }: SendContext,
  about: string,
  isEffect = true,
): Promise<SendOutcome | RefundSendOutcome> {
  const { owner, account, log, network, nextRequest, nowMs, sending } = parts;
  const id = nextRequest();
  const isUnaware = sending(key) === "unaware";
  const { name: process } = owner;
  const entry = log.send({ atMs: nowMs(), key, account, call: sent.call, process, about, isUnaware });
  const arrival = await network.post(owner, { ...sent, id, key, account });
  const call: Sent = { call: sent.call, isEffect: isEffect && sent.call !== "create", resend };
  const outcome = sendOutcome(arrival, call);
  entry.seen =
    outcome.type === "not_performed"
      ? "unexecuted"
      : outcome.type === "unknown"
        ? seenOf(arrival)
        : "answered";
  return outcome;
}

/** The refusal of a re-send: that one was not executed either. */
function seenOf(arrival: Arrival): "unexecuted" | "unknown" {
  if (arrival.type === "refused") return "unexecuted";
  if (arrival.type !== "answer") return "unknown";
  const { status, code } = arrival.answer;
  return status === 401 || (status === 429 && code !== "lock_timeout") ? "unexecuted" : "unknown";
}

const NOTHING: WireAnswer = { status: 200, replayed: false, body: null };

type Window = Parameters<PaymentProvider["findCharge"]>[0];

/** The questions: what is read is read when they arrive, and may be old when the answer is back. */
function asksOf(parts: ProviderParts) {
  const { model, log, network, owner, account } = parts;

  /** What belongs to a charge of another account is not there. */
  function own<Item extends { readonly intentId: string }>(item: Item | undefined): Item | null {
    return item !== undefined && model.intents.get(item.intentId)?.account === account ? item : null;
  }

  async function ask<Read>(about: string, what: string, read: () => Read) {
    const entry = log.ask(about);
    let seen: { readonly value: Read } | null = null;
    const arrival = await network.get(owner, what, () => {
      seen = { value: read() };
      return NOTHING;
    });
    const unanswered = unansweredOf(arrival);
    const evidence = evidenceOf(arrival);
    const found = seen as { readonly value: Read } | null;
    if (unanswered !== null || found === null) {
      return { unanswered: unanswered ?? ({ ...LOST, evidence } as const), value: null, evidence };
    }
    log.answer(entry);
    return { unanswered: null, value: found.value, evidence };
  }

  async function askCharge(
    about: string,
    what: string,
    read: () => Intent | null,
    none: "missing" | "absent",
  ) {
    const { unanswered, value, evidence } = await ask(about, what, () => {
      const intent = read();
      return intent === null ? null : model.bodyOf(intent);
    });
    if (unanswered !== null) return unanswered;
    if (value === null || !("intent" in value)) return { type: none, evidence };
    return { type: "found", charge: chargeOf(value.intent, value.fee), evidence } as const;
  }

  async function askRefund(
    about: string,
    what: string,
    read: () => SimulatedRefund | null,
    none: "missing" | "absent",
  ) {
    const { unanswered, value, evidence } = await ask(about, what, () => {
      const refund = read();
      return refund === null ? null : refundOf(refund);
    });
    if (unanswered !== null) return unanswered;
    return value === null ? { type: none, evidence } : ({ type: "found", refund: value, evidence } as const);
  }

  return {
    async account(): Promise<AccountOutcome> {
      const { unanswered } = await ask("account", "account", () => null);
      if (unanswered !== null) return { type: "unanswered", reason: unanswered.reason };
      return { type: "known", accountId: account };
    },
    getCharge: (id: string): Promise<LookupOutcome> =>
      askCharge(id, `get ${id}`, () => model.visible(id, account), "missing"),
    findCharge: ({ attemptId, createdFrom, createdTo }: Window): Promise<LookupOutcome> => {
      const isMeant = (intent: Intent) => {
        const at = EPOCH_MS + intent.createdAtMs;
        return at >= createdFrom.getTime() && at <= createdTo.getTime();
      };
      const read = () => model.markedFor(attemptId, account).find(isMeant) ?? null;
      return askCharge(attemptId, `find ${attemptId}`, read, "absent");
    },
    getRefund: (id: string): Promise<RefundLookupOutcome> => {
      const about = model.refunds.get(id)?.attemptId ?? id;
      return askRefund(about, `get ${id}`, () => own(model.refunds.get(id)), "missing");
    },
    findRefund: ({ attemptId }: { attemptId: string }): Promise<RefundLookupOutcome> => {
      const read = () => own([...model.refunds.values()].find((refund) => refund.attemptId === attemptId));
      return askRefund(attemptId, `find refund of ${attemptId}`, read, "absent");
    },
    getDispute: async (id: string): Promise<DisputeLookupOutcome> => {
      const { unanswered, value, evidence } = await ask(id, `get ${id}`, () => {
        const dispute = own(model.disputes.get(id));
        return dispute === null ? null : disputeOf(dispute);
      });
      if (unanswered !== null) return unanswered;
      return value === null ? { type: "missing", evidence } : { type: "found", dispute: value, evidence };
    },
    getPayout: async (id: string): Promise<PayoutLookupOutcome> => {
      const { unanswered, value, evidence } = await ask(id, `get ${id}`, () => model.payouts.get(id) ?? null);
      if (unanswered !== null) return unanswered;
      if (value === null) return { type: "missing", evidence };
      const movements = value.movements.map(({ transactionId, intentId: chargeId, amount }) => ({
        transactionId,
        chargeId,
        amount,
        currency: CURRENCY,
      }));
      return { type: "found", movements, evidence };
    },
  };
}

const LOST = { type: "unanswered", reason: "connection_lost", retryAfterMs: null } as const;
