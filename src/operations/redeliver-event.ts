import { PawlError } from "../domain/errors.js";
import { readRedelivery, redelivering } from "../store/outbox.js";
import type { Deps } from "./deps.js";
import type { KeyedAnswer, KeyedCall } from "./keyed-request.js";
import { keyedWrite } from "./keyed-write.js";

export const REDELIVER_EVENT = "events.redeliver";

/**
 * Sends an event again, under its own id, to every enabled endpoint that wants its type, from the first wait of the
 * schedule on. Throws PawlError not_found.
 */
export function redeliverEvent(
  deps: Pick<Deps, "db" | "settings">,
  call: KeyedCall,
  eventId: string,
): Promise<KeyedAnswer> {
  return keyedWrite(deps, {
    ...call,
    operation: REDELIVER_EVENT,
    pathIds: [eventId],
    input: {},
    resourceId: eventId,
    prepare: async () => {
      const { sql } = deps.db;
      const endpoints = await readRedelivery(sql, call.caller.tenantId, eventId);
      if (endpoints === null) throw new PawlError("not_found", "There is no event with this id.");
      const document = { object: "redelivery", event_id: eventId, deliveries: endpoints.length };
      const change = redelivering(sql, eventId, endpoints);
      return { status: 200, location: `/v1/events/${eventId}`, document, change };
    },
  });
}
