import { afterEach, expect } from "vitest";
import { createApiKey, createTenant } from "../../src/operations/manage-tenants.js";
import { type ApiAnswer, ApiClient, newKey } from "./api-client.js";
import { type Harness, type HarnessOptions, startHarness } from "./harness.js";
import { Receiver } from "./receiver.js";
import { until } from "./until.js";

const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

export interface World {
  readonly harness: Harness;
  readonly api: ApiClient;
}

export async function start(options: HarnessOptions = {}): Promise<World> {
  const env = {
    PORT: "0",
    ADMIN_PORT: "0",
    RELAY_INTERVAL_MS: "20",
    WEBHOOK_INTERVAL_MS: "20",
    WEBHOOK_RETRY_SCHEDULE_MS: "20,40",
    WEBHOOK_ALLOW_PRIVATE_TARGETS: "true",
    ...options.env,
  };
  const workers = options.workers ?? (["attempts", "reconciler", "relay", "webhooks"] as const);
  const harness = await startHarness({ ...options, env, workers });
  ends.push(() => harness.stop());
  const { apiPort } = await harness.pawl.listen(true);
  return { harness, api: new ApiClient(`http://127.0.0.1:${apiPort}`, harness.secret) };
}

export async function receiver(): Promise<Receiver> {
  const started = await Receiver.start();
  ends.push(() => started.stop());
  return started;
}

export const post = (
  api: ApiClient,
  path: string,
  body?: unknown,
  key: string | null = newKey(),
): Promise<ApiAnswer> =>
  api.request("POST", path, {
    headers: {
      ...(key === null ? {} : { "Idempotency-Key": key }),
      ...(body === undefined ? {} : { "Content-Type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
export const register = (api: ApiClient, body: unknown, key?: string) =>
  post(api, "/v1/webhook_endpoints", body, key);
export const remove = (api: ApiClient, id: string) =>
  api.request("DELETE", `/v1/webhook_endpoints/${id}`, {});

interface Endpoint {
  readonly id: string;
  readonly secret: string;
}

export async function registered(api: ApiClient, body: unknown): Promise<Endpoint> {
  const answer = await register(api, body);
  expect(answer.status, answer.text).toBe(201);
  return answer.json as unknown as Endpoint;
}

export async function stranger({ harness, api }: World, scopes: string[] | null = null): Promise<ApiClient> {
  const tenantId = scopes === null ? (await createTenant(harness.deps, "other")).id : harness.caller.tenantId;
  const key = await createApiKey(harness.deps, { tenantId, scopes, livemode: false } as never);
  return new ApiClient(api.url, key?.secret ?? "");
}

export const untilReceived = (from: Receiver, path: string, types: readonly string[]) =>
  until(
    `${types.join(", ")} at ${path}`,
    () => from.at(path),
    (all) => types.every((type) => all.some((one) => one.event.type === type)),
  );
