import { z } from "@hono/zod-openapi";
import { PawlError } from "../../domain/errors.js";
import type { IdPrefix } from "../../lib/ids.js";
import type { ApiRequest } from "../endpoint.js";

const HEX_DIGITS = "0198d5f2a3c47b1e9d20f6c1a8e45b77";

/** The `{id}` of a path, and how it is read: throws PawlError not_found for an id that no such object can have. */
function idInPath(prefix: IdPrefix, what: string) {
  const shape = new RegExp(`^${prefix}_[0-9a-f]{32}$`);
  return {
    schema: z.object({ id: z.string().openapi({ example: `${prefix}_${HEX_DIGITS}` }) }),
    of(request: ApiRequest): string {
      const id = request.http.req.param("id") ?? "";
      if (!shape.test(id)) throw new PawlError("not_found", `There is no such ${what}.`);
      return id;
    },
  };
}

export const paymentId = idInPath("pay", "payment");
export const refundId = idInPath("re", "refund");
export const eventId = idInPath("evt", "event");
export const reviewId = idInPath("rev", "review");
export const webhookEndpointId = idInPath("we", "webhook endpoint");
