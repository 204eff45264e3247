import { Webhook } from "standardwebhooks";

/**
 * The headers of one try, as the Standard Webhooks specification has them: one signature for each secret, over the
 * event's id, the time of this try and the exact body.
 */
export function signedHeaders(
  message: { readonly eventId: string; readonly body: string; readonly secrets: readonly string[] },
  now: Date,
): Readonly<Record<string, string>> {
  return {
    "webhook-id": message.eventId,
    "webhook-timestamp": String(Math.floor(now.getTime() / 1000)),
    "webhook-signature": message.secrets
      .map((secret) => new Webhook(secret).sign(message.eventId, now, message.body))
      .join(" "),
  };
}
