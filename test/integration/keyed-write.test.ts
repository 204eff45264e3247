import { describe, expect, test } from "vitest";
import { PawlError } from "../../src/domain/errors.js";
import { webhookEndpointDocument } from "../../src/domain/webhook.js";
import { newId } from "../../src/lib/ids.js";
import { type KeyedEffect, type KeyedWrite, keyedWrite } from "../../src/operations/keyed-write.js";
import { rotateWebhookSecret } from "../../src/operations/manage-webhook-endpoints.js";
import { getWebhookEndpoint } from "../../src/operations/read-webhook-endpoints.js";
import { endWaiting, untilWaiting, untilWholePoolWorks } from "../support/lock-waits.js";
import { useWebhookWorld, type WebhookWorld } from "../support/webhook-stage.js";

const stage = useWebhookWorld();

/** A write whose effect is a row of a table of its own kind: a tenant with this name. */
function writeOf(world: WebhookWorld, changes: Partial<KeyedWrite> = {}): KeyedWrite {
  return {
    caller: { tenantId: world.tenantId, keyId: "key_1", scopes: [], livemode: false },
    context: { requestId: newId("req"), traceparent: null, signal: new AbortController().signal },
    operation: "things.create",
    key: "K",
    pathIds: [],
    input: { name: "a" },
    resourceId: "thing_1",
    prepare: () => Promise.resolve(effectIn(world)),
    ...changes,
  };
}

function effectIn({ sql }: WebhookWorld, held: KeyedEffect["change"]["held"] = null): KeyedEffect {
  return {
    status: 201,
    location: "/v1/things/1",
    document: { id: "thing_1", secret: null },
    shownOnce: { secret: "s" },
    change: {
      held,
      effect: sql`made as (insert into tenants (id, name) select ${newId("ten")}, 'effect' from claimed)`,
    },
  };
}

const effects = async ({ sql }: WebhookWorld) =>
  (await sql`select from tenants where name = 'effect'`).length;
const records = ({ sql }: WebhookWorld) =>
  sql`select state, response_status, response_body from idempotency_keys`;

describe("a keyed write", () => {
  test("commits its key, its effect and its answer together, and replays without what is shown once", async () => {
    const world = await stage.start();
    const { deps } = await world.process({ workers: [] });
    const first = await keyedWrite(deps, writeOf(world));
    expect(first).toMatchObject({
      replayed: false,
      response: { status: 201, body: '{"id":"thing_1","secret":"s"}' },
    });
    const second = await keyedWrite(
      deps,
      writeOf(world, { check: () => Promise.reject(new Error("asked")) }),
    );
    expect(second).toMatchObject({
      replayed: true,
      response: {
        status: 201,
        headers: { Location: "/v1/things/1" },
        body: '{"id":"thing_1","secret":null}',
      },
      keyExpiresAt: first.keyExpiresAt,
    });
    expect(await effects(world)).toBe(1);
    expect(await records(world)).toMatchObject([{ state: "completed", response_status: 201 }]);
  });

  test.each([
    [
      "a check",
      { check: () => Promise.reject(new PawlError("validation_failed", "no")) },
      "validation_failed",
    ],
    ["what it is about", { prepare: () => Promise.reject(new PawlError("not_found", "no")) }, "not_found"],
  ])("refused by %s leaves nothing, and the key is free", async (_, changes, code) => {
    const world = await stage.start();
    const { deps } = await world.process({ workers: [] });
    await expect(keyedWrite(deps, writeOf(world, changes))).rejects.toMatchObject({ code });
    expect([await effects(world), await records(world)]).toEqual([0, []]);
    expect(await keyedWrite(deps, writeOf(world, { input: { name: "b" } }))).toMatchObject({
      replayed: false,
    });
  });

  test("that is refused for what the same request has just done is answered as that one was", async () => {
    const world = await stage.start();
    const { deps } = await world.process({ workers: [] });
    const write = writeOf(world, {
      prepare: async () => {
        await keyedWrite(deps, writeOf(world));
        throw new PawlError("review_closed", "taken");
      },
    });
    expect(await keyedWrite(deps, write)).toMatchObject({ replayed: true, response: { status: 201 } });
    expect(await effects(world)).toBe(1);
  });

  test.each([
    ["another input", { input: { name: "b" } }],
    ["other ids in its path", { pathIds: ["thing_2"] }],
  ])("with the key of %s is refused", async (_, changes) => {
    const world = await stage.start();
    const { deps } = await world.process({ workers: [] });
    await keyedWrite(deps, writeOf(world));
    await expect(keyedWrite(deps, writeOf(world, changes))).rejects.toMatchObject({
      code: "idempotency_key_reused",
    });
    expect(await effects(world)).toBe(1);
  });

  test("with the key of another operation or tenant is a write of its own", async () => {
    const world = await stage.start();
    const { deps } = await world.process({ workers: [] });
    await keyedWrite(deps, writeOf(world));
    const caller = { ...writeOf(world).caller, tenantId: newId("ten") };
    for (const changes of [{ operation: "things.remove" }, { caller }]) {
      expect(await keyedWrite(deps, writeOf(world, changes))).toMatchObject({ replayed: false });
    }
    expect(await effects(world)).toBe(3);
  });

  test.each([
    ["is answered by it", "commit", true],
    ["takes its place where that one is undone", "rollback", false],
  ])("waits for another with its key that is about to commit, and %s", async (_, end, replayed) => {
    const world = await stage.start();
    const { deps } = await world.process({ workers: [] });
    await keyedWrite(deps, writeOf(world, { key: "model" }));
    const other = await world.sql.reserve();
    try {
      await other`begin`;
      await other`
        insert into idempotency_keys (tenant_id, operation, key, fingerprint, resource_id, request_id, state,
               response_status, response_headers, response_body, completed_at, expires_at)
        select tenant_id, operation, 'K', fingerprint, resource_id, request_id, state, response_status,
               response_headers, response_body, completed_at, expires_at from idempotency_keys`;
      const write = keyedWrite(deps, writeOf(world));
      await untilWaiting(world);
      await other.unsafe(end);
      expect(await write).toMatchObject({ replayed });
    } finally {
      other.release();
    }
    expect(await effects(world)).toBe(replayed ? 1 : 2);
  });

  test("is judged again where the row that it was judged by has changed, and asks what is outside once", async () => {
    const world = await stage.start();
    const { deps } = await world.process({ workers: [] });
    const { id } = await world.endpoint("https://example.com/");
    const asked: string[] = [];
    const answer = await keyedWrite(
      deps,
      writeOf(world, {
        check: () => Promise.resolve(void asked.push("check")),
        prepare: async () => {
          asked.push("prepare");
          const [row] = await world.sql<{ url: string }[]>`select url from webhook_endpoints`;
          const url = row?.url ?? "";
          if (asked.length < 4) await world.sql`update webhook_endpoints set url = url || 'x'`;
          const held = world.sql`
            select from webhook_endpoints where tenant_id = ${world.tenantId} and id = ${id} and url = ${url} for update`;
          return { ...effectIn(world, held), document: { url } };
        },
      }),
    );
    expect(asked).toEqual(["check", "prepare", "prepare", "prepare"]);
    expect(answer.response.body).toBe('{"url":"https://example.com/xx","secret":"s"}');
    expect(await effects(world)).toBe(1);
  });

  test("does not go on for ever about what never rests, and leaves its key free", async () => {
    const world = await stage.start();
    const { deps } = await world.process({ workers: [] });
    const held = world.sql`select from webhook_endpoints for update`;
    const prepare = () => Promise.resolve(effectIn(world, held));
    await expect(keyedWrite(deps, writeOf(world, { prepare }))).rejects.toMatchObject({
      code: "service_unavailable",
    });
    expect([await effects(world), await records(world)]).toEqual([0, []]);
  });
});

describe("a session that the database ends in the middle of a keyed write", () => {
  test("is an answer to that request alone: the process lives, and the same key then works", async () => {
    const world = await stage.start();
    const { deps } = await world.process({ workers: [] });
    const { id, secret } = await world.endpoint("https://example.com/");
    const { caller, context } = writeOf(world);
    const rotate = () => rotateWebhookSecret(deps, { caller, context, key: "K" }, id);
    const other = await world.sql.reserve();
    try {
      await other`begin`;
      await other`select from webhook_endpoints for update`;
      const cut = expect(rotate()).rejects.toMatchObject({ code: "service_unavailable" });
      await untilWaiting(world);
      await endWaiting(world);
      await cut;
      await other`rollback`;
    } finally {
      other.release();
    }
    await untilWholePoolWorks(deps.db);
    expect(await records(world)).toEqual([]);
    expect(await world.sql`select secret from webhook_endpoints`).toEqual([{ secret }]);
    expect(await rotate()).toMatchObject({ replayed: false, response: { status: 200 } });
    expect(await world.sql`select previous_secret from webhook_endpoints`).toEqual([
      { previous_secret: secret },
    ]);
  });
});

describe("a rotation that waits for another change of the endpoint", () => {
  test("answers with what that one left, which is what is then shown", async () => {
    const world = await stage.start();
    const { deps } = await world.process({ workers: [] });
    const { id } = await world.endpoint("https://example.com/");
    const { caller, context } = writeOf(world);
    const other = await world.sql.reserve();
    try {
      await other`begin`;
      await other`
        update webhook_endpoints set enabled = false, disabled_reason = 'gone', updated_at = now() + interval '1 s'`;
      const rotation = rotateWebhookSecret(deps, { caller, context, key: "K" }, id);
      await untilWaiting(world);
      await other`commit`;
      const answer = await rotation;
      if (answer.type !== "final") throw new Error("no final answer");
      const told = JSON.parse(answer.response.body) as { secret: string };
      expect(told).toMatchObject({ enabled: false, disabled_reason: "gone" });
      const shown = webhookEndpointDocument(await getWebhookEndpoint(deps, caller, id));
      expect({ ...told, secret: null }).toEqual(shown);
      expect(await world.sql`select secret from webhook_endpoints`).toEqual([{ secret: told.secret }]);
    } finally {
      other.release();
    }
  });
});

describe("rotations of one secret at the same time", () => {
  test("come one after the other: each keeps the one before it, and answers with what is then shown", async () => {
    const world = await stage.start();
    const { deps } = await world.process({ workers: [] });
    const { id, secret } = await world.endpoint("https://example.com/");
    const { caller, context } = writeOf(world);
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, at) => rotateWebhookSecret(deps, { caller, context, key: `K${at}` }, id)),
    );
    const shown = answers.map((answer) => {
      if (answer.type !== "final") throw new Error("no final answer");
      return JSON.parse(answer.response.body) as { secret: string; updated_at: string };
    });
    const secrets = [secret, ...shown.map((one) => one.secret)];
    expect(new Set(secrets).size).toBe(9);
    const [row] = await world.sql`select secret, previous_secret from webhook_endpoints`;
    expect(secrets.slice(1)).toContain(row?.["secret"]);
    expect(secrets.slice(1)).toContain(row?.["previous_secret"]);
    expect(row?.["previous_secret"]).not.toBe(row?.["secret"]);
    const last = shown.find((one) => one.secret === row?.["secret"]);
    const now = await getWebhookEndpoint(deps, caller, id);
    expect(last).toEqual({ ...webhookEndpointDocument(now), secret: last?.secret });
  });
});
