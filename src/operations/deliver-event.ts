import { eventDocument } from "../domain/events.js";
import { BROKER_ID, type DeliveryResult, waitAfter, waitForBroker } from "../domain/webhook.js";
import { withDatabase } from "../store/db.js";
import { type ClaimedDelivery, recordDelivery } from "../store/deliveries.js";
import type { Deps } from "./deps.js";
import { disableEndpoint } from "./disable-endpoint.js";

export type DeliveryDeps = Pick<
  Deps,
  "db" | "webhooks" | "broker" | "clock" | "log" | "probe" | "meter" | "settings"
>;

/** RFC 9110 section 15.5.11: the receiver is gone for good. */
const GONE = 410;

/**
 * One try of a claimed delivery, and the record of what it came to. At least once: a worker that dies in between leaves
 * the delivery to the end of its lease, and it is sent again with the same id and the same bytes.
 */
export async function deliverEvent(deps: DeliveryDeps, claimed: ClaimedDelivery): Promise<void> {
  await deps.probe("before_delivery");
  const result = await send(deps, claimed);
  await deps.probe("after_delivery");
  const isGone = result.status === GONE;
  const retryInMs = result.delivered || isGone ? null : nextTryInMs(deps, claimed);
  const { recorded, failingTooLong } = await withDatabase(() =>
    recordDelivery(deps.db.sql, claimed, result, {
      retryInMs,
      disableAfterMs: deps.settings.webhookDisableAfterMs,
    }),
  );
  const kind = claimed.endpointId === BROKER_ID ? "broker" : "webhook";
  deps.meter.deliveryTried(kind, recorded ? outcomeOf(result, retryInMs) : "lost");
  if (!result.delivered) {
    const { tenantId: tenant_id, endpointId: endpoint, tries } = claimed;
    const { status, fault } = result;
    deps.log.info({ tenant_id, endpoint, event: claimed.event.id, tries, status, fault }, "delivery failed");
  }
  if (isGone || failingTooLong) await disableEndpoint(deps, claimed, isGone ? "gone" : "failing");
}

function send(deps: DeliveryDeps, { tenantId, event, target }: ClaimedDelivery): Promise<DeliveryResult> {
  const body = JSON.stringify(eventDocument(event));
  if (target !== null) return deps.webhooks.send({ ...target, eventId: event.id, body });
  if (deps.broker === null) throw new Error("a delivery to the broker was claimed and there is none");
  return deps.broker.publish({ tenantId, eventId: event.id, type: event.type, body });
}

function nextTryInMs({ settings }: DeliveryDeps, { endpointId, tries }: ClaimedDelivery): number | null {
  const { webhookRetryScheduleMs: schedule, retryMostMs } = settings;
  return endpointId === BROKER_ID
    ? waitForBroker(schedule, tries, Math.random(), retryMostMs)
    : waitAfter(schedule, tries, Math.random());
}

function outcomeOf(result: DeliveryResult, retryInMs: number | null): "delivered" | "retrying" | "failed" {
  if (result.delivered) return "delivered";
  return retryInMs === null ? "failed" : "retrying";
}
