import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type Harness, newKey, startHarness } from "../support/harness.js";
import { until } from "../support/until.js";

const PROVIDER_TIMEOUT_MS = 20_000;

let harness: Harness;
beforeAll(async () => {
  harness = await startHarness({ workers: [] });
});
afterAll(() => harness.stop());

test("workers claim nothing more once a call could not end within the grace, though a request still runs", async () => {
  const { control } = harness.sandbox;
  const pawl = await harness.another({
    env: {
      PORT: "0",
      ADMIN_PORT: "0",
      PROVIDER_TIMEOUT_MS: String(PROVIDER_TIMEOUT_MS),
      ATTEMPT_LEASE_MS: String(3 * PROVIDER_TIMEOUT_MS),
    },
    workers: ["attempts"],
  });
  const { apiPort } = await pawl.listen(true);
  await control.addFault({
    match: { call: "payment_intents.confirm" },
    fault: { type: "hang", effect: "applied" },
  });
  const running = fetch(`http://127.0.0.1:${String(apiPort)}/v1/payments`, {
    method: "POST",
    headers: {
      Authorization: `Bearer ${harness.secret}`,
      "Content-Type": "application/json",
      "Idempotency-Key": newKey(),
      Prefer: "wait=30",
    },
    body: JSON.stringify({ amount: 4200, currency: "usd", payment_method: "pm_card_visa" }),
  });
  await control.waitForHeld();
  const { loops } = pawl as unknown as { readonly loops: { stop(): Promise<void> } };
  const stop = vi.spyOn(loops, "stop");
  let hasEnded = false;
  const drained = pawl.drain(PROVIDER_TIMEOUT_MS).then(() => (hasEnded = true));
  await until(
    "workers that are told to stop",
    () => stop.mock.calls.length,
    (calls) => calls === 1,
    PROVIDER_TIMEOUT_MS / 2,
  );
  expect(hasEnded).toBe(false);
  await control.release();
  expect((await running).status).toBe(201);
  await drained;
});
