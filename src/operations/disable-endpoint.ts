import { webhookEndpointDocument } from "../domain/webhook.js";
import { newId } from "../lib/ids.js";
import { withDatabase } from "../store/db.js";
import { insertEvent } from "../store/outbox.js";
import { disableEndpoint as disable } from "../store/webhook-endpoints.js";
import type { Deps } from "./deps.js";

/**
 * Takes an endpoint out of use, with an event that says so, in one transaction. Nothing happens where another worker was
 * first or the endpoint has taken something since. What waits for it stays, and goes on when it is enabled again.
 */
export async function disableEndpoint(
  deps: Pick<Deps, "db" | "log" | "settings">,
  { tenantId, endpointId }: { readonly tenantId: string; readonly endpointId: string },
  reason: "gone" | "failing",
): Promise<void> {
  const name = { tenantId, id: endpointId };
  const disabled = await withDatabase(() =>
    deps.db.sql.begin(async (tx) => {
      const endpoint = await disable(tx, name, reason, deps.settings.webhookDisableAfterMs);
      if (endpoint === null) return false;
      const object = webhookEndpointDocument(endpoint);
      await insertEvent(tx, { tenantId, id: newId("evt"), type: "webhook_endpoint.disabled", object });
      return true;
    }),
  );
  if (disabled)
    deps.log.warn({ tenant_id: tenantId, endpoint: endpointId, reason }, "webhook endpoint disabled");
}
