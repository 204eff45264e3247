import { describe, expect, test } from "vitest";
import { PawlError } from "../../src/domain/errors.js";
import { newId } from "../../src/lib/ids.js";
import { type KeyedWrite, keyedWrite } from "../../src/operations/keyed-write.js";
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
    effect: async (tx) => {
      await tx`insert into tenants (id, name) values (${newId("ten")}, 'effect')`;
      return {
        status: 201,
        location: "/v1/things/1",
        document: { id: "thing_1", secret: null },
        shownOnce: { secret: "s" },
      };
    },
    ...changes,
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
    [
      "an effect",
      {
        effect: async (tx: Parameters<KeyedWrite["effect"]>[0]) => {
          await tx`insert into tenants (id, name) values ('ten_x', 'effect')`;
          throw new PawlError("not_found", "no");
        },
      },
      "not_found",
    ],
  ])("refused by %s leaves nothing, and the key is free", async (_, changes, code) => {
    const world = await stage.start();
    const { deps } = await world.process({ workers: [] });
    await expect(keyedWrite(deps, writeOf(world, changes))).rejects.toMatchObject({ code });
    expect([await effects(world), await records(world)]).toEqual([0, []]);
    expect(await keyedWrite(deps, writeOf(world, { input: { name: "b" } }))).toMatchObject({
      replayed: false,
    });
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

  test("waits for another with its key that is about to commit, and takes its place where that one is undone", async () => {
    const world = await stage.start();
    const { deps } = await world.process({ workers: [] });
    let fail: (error: Error) => void = () => undefined;
    let reached: () => void = () => undefined;
    const isThere = new Promise<void>((resolve) => {
      reached = resolve;
    });
    const first = keyedWrite(
      deps,
      writeOf(world, {
        effect: () =>
          new Promise((_, reject) => {
            fail = reject;
            reached();
          }),
      }),
    );
    await isThere;
    const second = keyedWrite(deps, writeOf(world));
    fail(new PawlError("not_found", "undone"));
    await expect(first).rejects.toMatchObject({ code: "not_found" });
    expect(await second).toMatchObject({ replayed: false });
    expect(await effects(world)).toBe(1);
  });
});
