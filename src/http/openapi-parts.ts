import { z } from "@hono/zod-openapi";
import { ERROR_CODES, type ErrorCode } from "../domain/errors.js";
import { problemSchema } from "./response-schemas.js";

/** Pieces that the endpoints' documentation is put together from. */

export function jsonContent(schema: z.ZodType) {
  return { "application/json": { schema } };
}

/** What any call may be answered with. */
const ANY_CALL: readonly ErrorCode[] = [
  "authentication_required",
  "permission_denied",
  "rate_limited",
  "internal_error",
  "service_unavailable",
];

/** One response a status; its description names the codes that come with it, each with its page. */
export function problems(...codes: readonly ErrorCode[]) {
  return problemsAlone(...codes, ...ANY_CALL);
}

/** Of a call that is answered with these and nothing else. */
export function problemsAlone(...codes: readonly ErrorCode[]) {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of codes) {
    const { status } = ERROR_CODES[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  return Object.fromEntries(
    [...byStatus].map(([status, known]) => [
      String(status),
      {
        description: known.map((code) => `[${code}](/docs/errors/${code})`).join(", "),
        content: { "application/problem+json": { schema: problemSchema } },
      },
    ]),
  );
}

const text = { type: "string" } as const;

export const keyedRequestHeaders = z.object({
  "Idempotency-Key": z.string().openapi({
    description:
      "One key for one intent: 1 to 255 printable ASCII characters, as an RFC 9651 string (in quotes) or bare. Both name the same key; a key with a comma needs the quotes. Never a card number.",
    example: '"8e03978e-40d5-43e8-bc93-6894a57f9324"',
  }),
  Prefer: z.string().optional().openapi({
    description: "RFC 7240: `wait=N`, 0 to 30 seconds, more is 30; `respond-async` is `wait=0`.",
    example: "wait=10",
  }),
});

export const keyedHeaders = {
  Location: { schema: text, description: "The payment." },
  "Idempotent-Replayed": { schema: text, description: "`true` where a stored answer is sent again." },
  "Idempotency-Key-Expires": { schema: text, description: "When a finished key is forgotten (RFC 3339)." },
  "Preference-Applied": { schema: text, description: "The preference that was followed." },
  "Retry-After": { schema: text, description: "On 202: seconds until it is worth asking again." },
};
