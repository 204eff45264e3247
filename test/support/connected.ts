import { afterEach } from "vitest";
import type { WebhookEndpointInput } from "../../src/sandbox/webhooks.js";
import { ApiClient } from "./api-client.js";
import type { Harness, HarnessOptions } from "./harness.js";
import { type Inbox, inboxOf, OPEN_INBOX, openInbox, WEBHOOK_SECRET } from "./provider-events.js";
import type { Stage } from "./stage.js";
import { until } from "./until.js";

/** No clock of an attempt's own ends within a test: what becomes known was told. */
const NO_OWN_CLOCK = { FOLLOW_FIRST_MS: "600000", FOLLOW_MOST_MS: "600000" };

export interface Connected {
  readonly harness: Harness;
  readonly client: ApiClient;
  readonly endpointId: string;
}

/** For a test file: starts a process with its API and its workers, to which the sandbox sends its events. */
export function useConnected(
  stage: Stage,
): (endpoint?: Partial<WebhookEndpointInput>, options?: HarnessOptions) => Promise<Connected> {
  const inboxes: Inbox[] = [];
  afterEach(async () => {
    for (const inbox of inboxes.splice(0)) await inbox.close();
  });
  return async (endpoint = {}, options = {}) => {
    const harness = await stage.start({
      workers: ["attempts", "reconciler", "provider-events", "ledger"],
      env: { ...OPEN_INBOX, ...NO_OWN_CLOCK },
      ...options,
    });
    const inbox = await openInbox(harness.deps);
    inboxes.push(inbox);
    const client = new ApiClient(new URL(inbox.url).origin, harness.secret);
    const { id } = await harness.sandbox.control.addWebhookEndpoint({
      url: inbox.url,
      secrets: [WEBHOOK_SECRET],
      ...endpoint,
    });
    return { harness, client, endpointId: id };
  };
}

/** Every event that the sandbox has made is delivered and applied, and nothing of any attempt is under way. */
export async function settled({ harness }: Connected): Promise<void> {
  await harness.sandbox.control.webhooksIdle();
  await until(
    "every event applied",
    () => inboxOf(harness),
    (rows) => rows.every((row) => row.state === "applied"),
  );
}
