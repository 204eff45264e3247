import { paymentDocument } from "../domain/documents.js";
import { PawlError } from "../domain/errors.js";
import { type Payment, type PaymentInput, UNTOUCHED } from "../domain/payment.js";
import { newId } from "../lib/ids.js";
import type { AcceptRow } from "../store/accept.js";
import { attemptIdOf } from "./attempt-id.js";
import type { Deps } from "./deps.js";
import { type KeyedRequest, keyNameOf } from "./keyed-request.js";

/** A request to pay. */
export interface CreateRequest extends KeyedRequest {
  readonly input: PaymentInput;
}

/**
 * What the accept of this run inserts; `otherRuns`: the ids of the key's other attempts, where they are to be looked for.
 * Throws `amount_not_supported` where the provider cannot carry the amount.
 */
export function acceptRow(
  deps: Deps,
  request: CreateRequest,
  run: number,
  otherRuns: readonly string[] | null = null,
): AcceptRow {
  const { caller, input, context } = request;
  const name = keyNameOf(request);
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
    operation: request.operation,
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
    other_runs: otherRuns?.join(",") ?? null,
  };
  const {
    created_at: _created,
    updated_at: _updated,
    ...document
  } = paymentDocument(acceptedPayment(row, new Date(0)));
  return { ...row, document: JSON.stringify(document) };
}

/** The payment as the accept inserts it. */
export function acceptedPayment(row: Omit<AcceptRow, "document">, acceptedAt: Date): Payment {
  return {
    tenantId: row.tenant_id,
    id: row.payment_id,
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
    livemode: row.livemode,
    createdAt: acceptedAt,
    updatedAt: acceptedAt,
    // Last: before the others it takes a hundred times as long, a third of an accept.
    ...UNTOUCHED,
  };
}
