import { vi } from "vitest";
import type { authenticate } from "../../../src/operations/authenticate.js";
import type { checkReadiness } from "../../../src/operations/check-health.js";
import type { createPayment } from "../../../src/operations/create-payment.js";
import type { getIdempotencyKey } from "../../../src/operations/read-idempotency-key.js";
import type { getPayment, getTimeline, listPayments } from "../../../src/operations/read-payments.js";

/** Stand in for the operations, so that these tests see what HTTP alone does. Each test file mocks the modules with them. */
export const operations = {
  authenticate: vi.fn<typeof authenticate>(),
  createPayment: vi.fn<typeof createPayment>(),
  getPayment: vi.fn<typeof getPayment>(),
  listPayments: vi.fn<typeof listPayments>(),
  getTimeline: vi.fn<typeof getTimeline>(),
  getIdempotencyKey: vi.fn<typeof getIdempotencyKey>(),
  checkReadiness: vi.fn<typeof checkReadiness>(),
  CREATE_PAYMENT: "payments.create",
};
