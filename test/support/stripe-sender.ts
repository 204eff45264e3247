import { createHmac } from "node:crypto";
import { request } from "node:http";

/** Sends events as Stripe does, byte for byte as the test wants them; written from Stripe's documentation alone. */

export const STRIPE_SECRET = "whsec_end_to_end_0123456789";
export const INBOX_PATH = "/v1/providers/stripe/webhooks";

/** For processes that take the provider's events and hand on their own at once. */
export const EVENTFUL = {
  STRIPE_WEBHOOK_SECRET: STRIPE_SECRET,
  PROVIDER_EVENT_INTERVAL_MS: "50",
  RELAY_INTERVAL_MS: "20",
  WEBHOOK_INTERVAL_MS: "20",
} as const;

export function nowSeconds(): number {
  return Math.floor(Date.now() / 1_000);
}

/** The hex digest of `v1` (docs.stripe.com/webhooks): HMAC-SHA-256 over `t.body`. */
export function digestOf(body: string | Buffer, atSeconds: number | string, secret = STRIPE_SECRET): string {
  return createHmac("sha256", secret).update(`${atSeconds}.`).update(body).digest("hex");
}

export function signed(body: string | Buffer, atSeconds: number | string = nowSeconds()): string {
  return `t=${atSeconds},v1=${digestOf(body, atSeconds)}`;
}

export interface InboxAnswer {
  readonly status: number;
  readonly text: string;
}

export interface SendOptions {
  /** Null: the header is left out. Default: signed now. */
  readonly signature?: string | readonly string[] | null;
  /** Null: the header is left out. */
  readonly contentType?: string | null;
}

/** One delivery to the API at `apiUrl`, without anything that an HTTP client would add or change. */
export function deliver(
  apiUrl: string,
  body: string | Buffer,
  { signature = signed(body), contentType = "application/json; charset=utf-8" }: SendOptions = {},
): Promise<InboxAnswer> {
  const bytes = Buffer.from(body);
  return new Promise((resolve, reject) => {
    const outgoing = request(
      `${apiUrl}${INBOX_PATH}`,
      {
        method: "POST",
        agent: false,
        headers: {
          "Content-Length": bytes.length,
          ...(contentType === null ? {} : { "Content-Type": contentType }),
          ...(signature === null
            ? {}
            : { "Stripe-Signature": typeof signature === "string" ? signature : [...signature] }),
        },
      },
      (answer) => {
        let text = "";
        answer.setEncoding("utf8").on("data", (part: string) => {
          text += part;
        });
        answer.once("error", reject);
        answer.once("end", () => resolve({ status: answer.statusCode ?? 0, text }));
      },
    );
    outgoing.once("error", reject);
    outgoing.end(bytes);
  });
}
