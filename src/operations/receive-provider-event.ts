import type { NoticeSubject, ProviderNotice } from "../domain/provider.js";
import type { NoticeRefusal } from "../domain/provider-event.js";
import { findChargeOfObject, tenantExists } from "../store/attempt-references.js";
import { withDatabase } from "../store/db.js";
import { insertProviderEvent } from "../store/provider-events.js";
import type { Deps } from "./deps.js";

export type Received =
  /** Committed before this is returned: it may be acknowledged. */
  | { readonly type: "stored" }
  /** Stored by an earlier delivery. */
  | { readonly type: "duplicate" }
  /** Not for us: acknowledged, so that it is not sent again, and nothing is kept. */
  | { readonly type: "ignored"; readonly reason: "not_followed" | "other_mode" | "not_ours" }
  /** Not signed by the provider; or `malformed`: signed, and no event. */
  | { readonly type: "refused"; readonly reason: NoticeRefusal };

/**
 * Takes in one event of the provider's: `rawBody` as it came, `signature` every value of its header. Makes no call to
 * the provider. Throws service_unavailable where the database does not answer: the provider sends it again.
 */
export async function receiveProviderEvent(
  deps: Deps,
  rawBody: Uint8Array,
  signature: readonly string[],
): Promise<Received> {
  const received = await receive(deps, rawBody, signature);
  deps.meter.providerEvent(received.type);
  return received;
}

async function receive(deps: Deps, rawBody: Uint8Array, signature: readonly string[]): Promise<Received> {
  const reading = deps.readNotice(rawBody, signature, deps.clock.now().getTime());
  if (!reading.ok) {
    deps.log.warn({ reason: reading.reason }, "provider event refused");
    return { type: "refused", reason: reading.reason };
  }
  const payload = textOf(rawBody);
  if (payload === null) return { type: "refused", reason: "malformed" };
  return takeNotice(deps, reading.notice, payload);
}

/** Stores what the provider told, once, where anything of ours can be meant; `payload` is the text that told it. */
export async function takeNotice(
  deps: Deps,
  notice: ProviderNotice,
  payload: string,
): Promise<Exclude<Received, { type: "refused" }>> {
  const ignored = await reasonToIgnore(deps, notice);
  if (ignored !== null) {
    const about = { event: notice.eventId, type: notice.type, reason: ignored };
    // The other mode's events mean an endpoint that is set up wrongly; the rest is the provider's everyday.
    if (ignored === "other_mode") deps.log.warn(about, "provider event of the other mode ignored");
    else deps.log.debug(about, "provider event ignored");
    return { type: "ignored", reason: ignored };
  }
  await deps.probe("before_event_stored");
  const isNew = await withDatabase(() =>
    insertProviderEvent(deps.db.sql, {
      provider: deps.provider.name,
      eventId: notice.eventId,
      type: notice.type,
      livemode: notice.livemode,
      objectId: notice.subject.objectId,
      payload,
    }),
  );
  await deps.probe("after_event_stored");
  if (isNew) deps.due.eventStored();
  return { type: isNew ? "stored" : "duplicate" };
}

type IgnoredReason = Extract<Received, { type: "ignored" }>["reason"];

async function reasonToIgnore(
  deps: Deps,
  { subject, livemode }: ProviderNotice,
): Promise<IgnoredReason | null> {
  if (subject.type === "other") return "not_followed";
  if (livemode !== deps.provider.livemode) return "other_mode";
  return (await mayBeOurs(deps, subject)) ? null : "not_ours";
}

/** Whether anything of ours can be meant: a known charge object, or the marker of a tenant that exists here. */
async function mayBeOurs(deps: Deps, subject: NoticeSubject): Promise<boolean> {
  const { db, provider } = deps;
  switch (subject.type) {
    case "charge": {
      const { attemptId, tenantId } = subject;
      const marks = attemptId !== null && tenantId !== null;
      if (marks && (await withDatabase(() => tenantExists(db.sql, tenantId)))) return true;
      return isChargeOfOurs(subject.objectId);
    }
    case "refund":
    case "dispute":
      // Without the charge's id only the object itself can tell: it is fetched later, and dropped if it is not ours.
      return subject.chargeId === null || isChargeOfOurs(subject.chargeId);
    case "payout":
      return true;
    case "other":
      return false;
  }

  async function isChargeOfOurs(objectId: string): Promise<boolean> {
    return (await withDatabase(() => findChargeOfObject(db.sql, provider.name, objectId))) !== null;
  }
}

/** The text of these bytes, whose bytes are these; null: they are no UTF-8. */
function textOf(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}
