import { JSON_TYPE, paymentDocument, paymentPath, type StoredResponse } from "../domain/documents.js";
import { PawlError } from "../domain/errors.js";
import type { Payment, PaymentInput } from "../domain/payment.js";
import { fingerprint } from "../lib/fingerprint.js";
import { newId } from "../lib/ids.js";
import { type Accepted, type AcceptRow, acceptRetry } from "../store/accept.js";
import { violatedConstraint, withDatabase } from "../store/db.js";
import { type KeyRecord, readKey } from "../store/idempotency-keys.js";
import { readOrderHolder, readPayment, readPaymentOfAttempts } from "../store/payments.js";
import { attemptIdOf } from "./attempt-id.js";
import type { Settled } from "./await-outcome.js";
import type { Caller, Deps, RequestContext } from "./deps.js";

export const CREATE_PAYMENT = "payments.create";

/** How long the caller waits for the outcome; `explicit`: a well-formed Prefer asked for it. */
export interface WaitPreference {
  readonly waitMs: number;
  readonly explicit: boolean;
}

export type KeyedAnswer =
  | {
      readonly type: "final";
      readonly response: StoredResponse;
      readonly replayed: boolean;
      readonly keyExpiresAt: Date | null;
    }
  | { readonly type: "processing"; readonly payment: Payment };

/** Rows that vanish between the claim and the look (a purge, a freed order id) are looked for again so many times. */
const MOST_LOOKS = 5;
/** Runs of one key that are searched for when its record is purged: each stands for a proven provider outage. */
const MOST_RUNS_SEARCHED = 50;
const RETRY_AFTER_SECONDS = 1;

interface Request {
  readonly caller: Caller;
  readonly context: RequestContext;
  readonly key: string;
  readonly input: PaymentInput;
  readonly fingerprint: string;
  readonly wait: WaitPreference;
}

/**
 * Records key, payment, attempt and event in one commit, then waits for the worker as `wait` says. The same key with
 * the same request never charges twice: it replays, waits, or is told that the first still runs.
 * Throws PawlError: idempotency_key_in_progress, _reused, _expired, merchant_order_id_taken, amount_not_supported,
 * provider_unavailable (proven to be without effect), service_unavailable.
 */
export async function createPayment(
  deps: Deps,
  caller: Caller,
  context: RequestContext,
  idempotencyKey: string,
  input: PaymentInput,
  wait: WaitPreference,
): Promise<KeyedAnswer> {
  const print = fingerprint(CREATE_PAYMENT, [], input);
  const request: Request = { caller, context, key: idempotencyKey, input, fingerprint: print, wait };
  for (let looks = 0; looks < MOST_LOOKS; looks += 1) {
    const answer = (await runFirst(deps, request)) ?? (await answerFromRecord(deps, request));
    if (answer !== null) return answer;
  }
  throw new PawlError(
    "service_unavailable",
    "The key's record kept changing; the same key is safe to send again.",
    {
      retryAfterSeconds: RETRY_AFTER_SECONDS,
    },
  );
}

/** Accepts the request as the key's first; null: key, derived attempt or order id stands already. */
async function runFirst(deps: Deps, request: Request): Promise<KeyedAnswer | null> {
  const row = acceptRow(deps, request, 1);
  try {
    const accepted = await withDatabase(() => deps.accepter.add(row));
    return accepted === null ? null : await waitForOutcome(deps, request, row, accepted);
  } catch (error) {
    if (violatedConstraint(error) !== null) return null;
    throw error;
  }
}

/** Who stands in the way decides the answer: the key is looked at before the order id. Null: nobody does any more. */
async function answerFromRecord(deps: Deps, request: Request): Promise<KeyedAnswer | null> {
  const { caller, input } = request;
  const record = await withDatabase(() => readKey(deps.db.sql, keyName(request)));
  if (record !== null) return answerFromKey(deps, request, record);
  const former = await withDatabase(() =>
    readPaymentOfAttempts(deps.db.sql, caller.tenantId, attemptIdsOf(deps, request)),
  );
  if (former !== null) throw expired(former);
  if (input.merchant_order_id === null) return null;
  const holder = await withDatabase(() =>
    readOrderHolder(deps.db.sql, caller.tenantId, input.merchant_order_id as string),
  );
  if (holder === null) return null;
  throw orderIdTaken(holder);
}

async function answerFromKey(deps: Deps, request: Request, record: KeyRecord): Promise<KeyedAnswer | null> {
  const payment = () => requirePayment(deps, request.caller.tenantId, record.resourceId);
  if (record.expired) throw expired(await payment());
  if (record.fingerprint !== request.fingerprint) {
    throw new PawlError("idempotency_key_reused", "This Idempotency-Key was first used for another request.");
  }
  switch (record.state) {
    case "completed":
      return replay(record);
    case "failed_retryable":
      return runAfresh(deps, request, record);
    case "in_progress":
      return waitForOther(deps, request, record, payment);
  }
}

/** The last run is proven to be without effect: this request becomes the next run. Null: another was first. */
async function runAfresh(deps: Deps, request: Request, record: KeyRecord): Promise<KeyedAnswer | null> {
  const row = acceptRow(deps, request, record.run + 1);
  const orderId = request.input.merchant_order_id;
  try {
    const accepted = await withDatabase(() => acceptRetry(deps.db.sql, row));
    return accepted === null ? null : await waitForOutcome(deps, request, row, accepted);
  } catch (error) {
    if (violatedConstraint(error) === null) throw error;
    const holder =
      orderId === null
        ? null
        : await withDatabase(() => readOrderHolder(deps.db.sql, row.tenant_id, orderId));
    // Freed since: look again.
    if (holder === null) return null;
    throw orderIdTaken(holder);
  }
}

async function waitForOutcome(
  deps: Deps,
  request: Request,
  row: AcceptRow,
  accepted: NonNullable<Accepted>,
): Promise<KeyedAnswer> {
  const settling = deps.outcomes.wait(
    row.tenant_id,
    row.payment_id,
    request.wait.waitMs,
    request.context.signal,
  );
  deps.due.accepted();
  const settled = await settling;
  if (settled !== null) return answerFromOutcome(deps, request, row.payment_id, settled, false);
  if (request.wait.waitMs > 0) {
    // What ended while the wait did is still answered as ended.
    return answerFromOutcome(deps, request, row.payment_id, { type: "elsewhere" }, false);
  }
  return { type: "processing", payment: acceptedPayment(row, accepted.acceptedAt) };
}

/** A duplicate waits only when it asks to; then it replays what came, else it is told that the first still runs. */
async function waitForOther(
  deps: Deps,
  request: Request,
  record: KeyRecord,
  payment: () => Promise<Payment>,
): Promise<KeyedAnswer> {
  if (request.wait.explicit) {
    const { caller, context, wait } = request;
    const settled = await deps.outcomes.wait(caller.tenantId, record.resourceId, wait.waitMs, context.signal);
    const answer = await answerFromOutcome(
      deps,
      request,
      record.resourceId,
      settled ?? { type: "elsewhere" },
      true,
    );
    if (answer.type === "final") return answer;
  }
  throw new PawlError(
    "idempotency_key_in_progress",
    "The first request with this key has no final answer yet.",
    {
      payment: await payment(),
      retryAfterSeconds: RETRY_AFTER_SECONDS,
    },
  );
}

async function answerFromOutcome(
  deps: Deps,
  request: Request,
  paymentId: string,
  settled: Settled,
  replayed: boolean,
): Promise<KeyedAnswer> {
  if (settled.type === "here" && settled.response !== null) {
    return { type: "final", response: settled.response, replayed, keyExpiresAt: settled.keyExpiresAt };
  }
  const record = await withDatabase(() => readKey(deps.db.sql, keyName(request)));
  if (record?.resourceId === paymentId && record.state === "completed")
    return { ...replay(record), replayed };
  const payment = await requirePayment(deps, request.caller.tenantId, paymentId);
  if (payment.failure?.retry === "same_key") {
    throw new PawlError(
      "provider_unavailable",
      payment.failure.message ?? "The provider did not perform the payment.",
      {
        payment,
        retryAfterSeconds: RETRY_AFTER_SECONDS,
      },
    );
  }
  return { type: "processing", payment };
}

function replay(record: KeyRecord): KeyedAnswer & { type: "final" } {
  if (record.responseStatus === null || record.responseBody === null) {
    throw new Error(`the key of ${record.resourceId} is completed without an answer`);
  }
  const headers = {
    "Content-Type": record.responseHeaders?.["Content-Type"] ?? JSON_TYPE,
    Location: record.responseHeaders?.["Location"] ?? paymentPath(record.resourceId),
  };
  return {
    type: "final",
    response: { status: record.responseStatus, headers, body: record.responseBody },
    replayed: true,
    keyExpiresAt: record.expiresAt,
  };
}

function acceptRow(deps: Deps, request: Request, run: number): AcceptRow {
  const { caller, input, context } = request;
  const name = keyName(request);
  const attemptId = attemptIdOf(deps.installationSecret, name, run);
  const prepared = deps.provider.prepareCharge(input, { attemptId, tenantId: caller.tenantId });
  if (!prepared.ok) {
    throw new PawlError("amount_not_supported", prepared.detail, {
      faults: [{ pointer: prepared.pointer, detail: prepared.detail }],
    });
  }
  const account = deps.account.current();
  const row = {
    tenant_id: caller.tenantId,
    operation: CREATE_PAYMENT,
    key: request.key,
    fingerprint: request.fingerprint,
    run,
    request_id: context.requestId,
    payment_id: newId("pay"),
    attempt_id: attemptId,
    timeline_id: newId("tl"),
    event_id: newId("evt"),
    ...input,
    provider: deps.provider.name,
    provider_account: account.type === "known" ? account.accountId : null,
    livemode: deps.provider.livemode,
    parameters: prepared.parameters,
  };
  const {
    created_at: _created,
    updated_at: _updated,
    ...document
  } = paymentDocument(acceptedPayment(row, new Date(0)));
  return { ...row, document: JSON.stringify(document) };
}

/** The payment as the accept inserts it. */
function acceptedPayment(row: Omit<AcceptRow, "document">, acceptedAt: Date): Payment {
  return {
    tenantId: row.tenant_id,
    id: row.payment_id,
    status: "processing",
    version: 1,
    amount: row.amount,
    currency: row.currency,
    captureMethod: row.capture_method === "manual" ? "manual" : "automatic",
    paymentMethod: row.payment_method,
    customer: row.customer,
    merchantOrderId: row.merchant_order_id,
    holdsOrderId: row.merchant_order_id !== null,
    description: row.description,
    statementDescriptor: row.statement_descriptor,
    returnUrl: row.return_url,
    metadata: row.metadata,
    provider: row.provider,
    providerPaymentId: null,
    nextAction: null,
    failure: null,
    resolution: null,
    amountCapturable: 0,
    amountCaptured: 0,
    amountRefunded: 0,
    livemode: row.livemode,
    createdAt: acceptedAt,
    updatedAt: acceptedAt,
  };
}

function keyName(request: Request) {
  return { tenantId: request.caller.tenantId, operation: CREATE_PAYMENT, key: request.key };
}

function attemptIdsOf(deps: Deps, request: Request): string[] {
  return Array.from({ length: MOST_RUNS_SEARCHED }, (_, at) =>
    attemptIdOf(deps.installationSecret, keyName(request), at + 1),
  );
}

async function requirePayment(deps: Deps, tenantId: string, paymentId: string): Promise<Payment> {
  const payment = await withDatabase(() => readPayment(deps.db.sql, tenantId, paymentId));
  if (payment === null) throw new Error(`the key's payment ${paymentId} does not exist`);
  return payment;
}

function expired(payment: Payment): PawlError {
  return new PawlError(
    "idempotency_key_expired",
    "The key has expired; its payment exists and is shown here.",
    { payment },
  );
}

function orderIdTaken(payment: Payment): PawlError {
  return new PawlError(
    "merchant_order_id_taken",
    "Another payment holds this merchant_order_id; it is shown here.",
    {
      payment,
    },
  );
}
