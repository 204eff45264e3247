import { type WebhookEndpoint, webhookEndpointDocument } from "../domain/webhook.js";
import { newId } from "../lib/ids.js";
import { withDatabase } from "../store/db.js";
import { disableEndpoint as disable, readForChange } from "../store/webhook-endpoints.js";
import type { Deps } from "./deps.js";

type Disabling = Pick<Deps, "db" | "log" | "settings">;

/** Each further look means that another try's outcome was written. After so many, the next try that fails is left to it. */
const MOST_LOOKS = 20;

/**
 * Takes an endpoint out of use, with an event that says so, in one statement. Nothing happens where another worker was
 * first or the endpoint has taken something since. What waits for it stays, and goes on when it is enabled again.
 */
export async function disableEndpoint(
  deps: Disabling,
  { tenantId, endpointId }: { readonly tenantId: string; readonly endpointId: string },
  reason: "gone" | "failing",
): Promise<void> {
  for (let looks = 0; looks < MOST_LOOKS; looks += 1) {
    const read = await withDatabase(() => readForChange(deps.db.sql, { tenantId, id: endpointId }));
    if (read === null) return;
    const { endpoint } = read;
    const now = new Date(read.at);
    if (!endpoint.enabled || (reason === "failing" && !failsTooLong(deps, endpoint, now))) return;
    const object = webhookEndpointDocument({
      ...endpoint,
      enabled: false,
      disabledReason: reason,
      updatedAt: now,
    });
    const event = { id: newId("evt"), type: "webhook_endpoint.disabled", object };
    if (await withDatabase(() => disable(deps.db.sql, read, reason, event))) {
      deps.log.warn({ tenant_id: tenantId, endpoint: endpointId, reason }, "webhook endpoint disabled");
      return;
    }
  }
}

function failsTooLong({ settings }: Disabling, { failingSince }: WebhookEndpoint, now: Date): boolean {
  return failingSince !== null && now.getTime() - failingSince.getTime() >= settings.webhookDisableAfterMs;
}
