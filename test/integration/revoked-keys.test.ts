import { describe, expect, test } from "vitest";
import { authenticate } from "../../src/operations/authenticate.js";
import { createApiKey, revokeApiKey } from "../../src/operations/manage-tenants.js";
import { type Harness, newKey, paymentInput, until } from "../support/harness.js";
import { useStage, wireOf } from "../support/stage.js";

const stage = useStage();

interface Client {
  post(key: string): Promise<{ status: number; replayed: string | null; text: string }>;
}

/** The API of this process over HTTP, with its own API key. */
async function clientOf(harness: Harness): Promise<{ client: Client; keyId: string; secret: string }> {
  const made = await createApiKey(harness.deps, {
    tenantId: harness.caller.tenantId,
    scopes: null,
    livemode: false,
  });
  if (made === null) throw new Error("the tenant vanished");
  const { apiPort } = await harness.pawl.listen(true);
  const input = Object.fromEntries(Object.entries(paymentInput()).filter(([, value]) => value !== null));
  const client: Client = {
    post: async (key) => {
      const response = await fetch(`http://127.0.0.1:${apiPort}/v1/payments`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${made.secret}`,
          "content-type": "application/json",
          "idempotency-key": key,
        },
        body: JSON.stringify(input),
      });
      return {
        status: response.status,
        replayed: response.headers.get("idempotent-replayed"),
        text: await response.text(),
      };
    },
  };
  return { client, keyId: made.id, secret: made.secret };
}

const ENV = { PORT: "0", ADMIN_PORT: "0" };

describe("a stored answer", () => {
  test("is not shown to a key that was revoked since", async () => {
    const harness = await stage.start({ env: ENV });
    const { client, keyId } = await clientOf(harness);
    const key = newKey();
    expect((await client.post(key)).status).toBe(201);
    expect(await client.post(key)).toMatchObject({ status: 201, replayed: "true" });
    await revokeApiKey(harness.deps, keyId);
    const refused = await until(
      "a refusal",
      () => client.post(key),
      (answer) => answer.status !== 201,
    );
    expect(refused).toMatchObject({ status: 401, replayed: null });
    expect(refused.text).not.toContain("pay_");
    expect(await wireOf(harness)).toEqual(["create 200", "confirm 200"]);
  });

  test("is not shown to a key that lost the scope since", async () => {
    const harness = await stage.start({ env: ENV });
    const { client, keyId } = await clientOf(harness);
    const key = newKey();
    expect((await client.post(key)).status).toBe(201);
    await harness.deps.db.sql`update api_keys set scopes = '{payments:read}' where id = ${keyId}`;
    const refused = await until(
      "a refusal",
      () => client.post(key),
      (answer) => answer.status !== 201,
    );
    expect(refused).toMatchObject({ status: 403, replayed: null });
    expect(refused.text).not.toContain("pay_");
  });
});

test("a revocation takes effect by itself, in a process that has just used the key, too", async () => {
  const harness = await stage.start();
  const other = await harness.another({ workers: [] });
  for (const deps of [harness.deps, other.deps])
    expect(await authenticate(deps, harness.secret)).not.toBeNull();
  await revokeApiKey(harness.deps, harness.caller.keyId);
  for (const deps of [harness.deps, other.deps]) {
    await until(
      "a revoked key",
      () => authenticate(deps, harness.secret),
      (caller) => caller === null,
    );
  }
});

test("a key of the other mode, another secret of the same key and an unknown one are nobody's", async () => {
  const harness = await stage.start({ workers: [] });
  const live = await createApiKey(harness.deps, {
    tenantId: harness.caller.tenantId,
    scopes: null,
    livemode: true,
  });
  const lastIsA = harness.secret.endsWith("A");
  const altered = `${harness.secret.slice(0, -1)}${lastIsA ? "B" : "A"}`;
  for (const secret of [live?.secret ?? "", altered, "pawl_test_x", ""]) {
    expect(await authenticate(harness.deps, secret)).toBeNull();
  }
});
