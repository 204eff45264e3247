import { z } from "@hono/zod-openapi";
import { PawlError } from "../../domain/errors.js";
import type { ApiRequest } from "../endpoint.js";

const PAYMENT_ID = /^pay_[0-9a-f]{32}$/;
const REFUND_ID = /^re_[0-9a-f]{32}$/;

export const pathId = z.object({
  id: z.string().openapi({ example: "pay_0198d5f2a3c47b1e9d20f6c1a8e45b77" }),
});
export const refundPathId = z.object({
  id: z.string().openapi({ example: "re_0198d5f2a3c47b1e9d20f6c1a8e45b77" }),
});

/** Throws PawlError not_found for an id that no payment can have. */
export function paymentIdOf(request: ApiRequest): string {
  return idOf(request, PAYMENT_ID, "There is no such payment.");
}

/** Throws PawlError not_found for an id that no refund can have. */
export function refundIdOf(request: ApiRequest): string {
  return idOf(request, REFUND_ID, "There is no such refund.");
}

function idOf(request: ApiRequest, shape: RegExp, absent: string): string {
  const id = request.http.req.param("id") ?? "";
  if (!shape.test(id)) throw new PawlError("not_found", absent);
  return id;
}
