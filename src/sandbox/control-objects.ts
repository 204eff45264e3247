import type { Context, Hono } from "hono";
import { Accounts } from "./accounts.js";
import { readBody } from "./control-body.js";
import type { KeyState } from "./control-types.js";
import { parseForm } from "./form.js";
import { ControlError, given } from "./json-shape.js";
import { countObjects, countRefunds, listRecords, patchObject, recordById } from "./objects.js";
import type { SandboxParts } from "./sandbox-parts.js";

/** What the sandbox holds: objects, seen and changed from outside. */
export function objectRoutes(app: Hono, { store, customer, callFor }: SandboxParts): void {
  const realmOf = (id: string) => {
    const realm = customer.realmOf(id);
    if (realm === null) throw new ControlError(`there is no PaymentIntent ${id}`, 404);
    return realm;
  };
  const recordOf = (id: string) => recordById(store, id);
  app.get("/_sandbox/payment_intents", (c) => {
    const { metadata, account, status } = parseForm(new URL(c.req.url).search.slice(1));
    const wanted =
      metadata === undefined || typeof metadata === "string" ? {} : (metadata as Record<string, string>);
    const filter = { metadata: wanted, account: textOrNone(account), status: textOrNone(status) };
    return c.json(listRecords(store, given(filter)));
  });
  app.get("/_sandbox/payment_intents/:id", (c) => {
    return c.json(recordOf(c.req.param("id")));
  });
  app.get("/_sandbox/counts", (c) => c.json(countObjects(store, c.req.query("metadata_key") ?? null)));
  app.get("/_sandbox/refund_counts", (c) => c.json(countRefunds(store, c.req.query("metadata_key") ?? null)));
  const patch = async (c: Context, id: string): Promise<object> => {
    const body = await readBody(c);
    const changes = body.any("changes");
    const event = body.string("event") ?? null;
    body.end();
    if (typeof changes !== "object" || changes === null) throw new ControlError("changes must be an object");
    return patchObject(store, callFor, id, changes as Record<string, unknown>, event);
  };
  app.patch("/_sandbox/payment_intents/:id", async (c) => {
    const id = c.req.param("id");
    realmOf(id);
    await patch(c, id);
    return c.json(recordOf(id));
  });
  app.patch("/_sandbox/objects/:id", async (c) => c.json(await patch(c, c.req.param("id"))));
  app.delete("/_sandbox/payment_intents/:id", (c) => {
    store.dropPaymentIntent(realmOf(c.req.param("id")), c.req.param("id"));
    store.commit();
    return c.json({ removed: true });
  });
  app.post("/_sandbox/payment_intents/:id/authenticate", async (c) => {
    const body = await readBody(c);
    const outcome = body.oneOf("outcome", ["complete", "fail"] as const);
    body.end();
    if (outcome === undefined) throw new ControlError("outcome must be complete or fail");
    const id = c.req.param("id");
    realmOf(id);
    if (customer.authenticate(id, outcome) === null)
      throw new ControlError(`${id} does not wait for its customer`, 409);
    return c.json(recordOf(id));
  });
  app.post("/_sandbox/payment_intents/:id/confirm", async (c) => {
    const body = await readBody(c);
    const params = given<Record<string, string>>({
      payment_method: body.string("payment_method"),
      return_url: body.string("return_url"),
    });
    body.end();
    const id = c.req.param("id");
    realmOf(id);
    customer.confirm(id, params);
    return c.json(recordOf(id));
  });
}

function textOrNone(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** Idempotency keys and API keys. */
export function keyRoutes(app: Hono, { store, accounts }: SandboxParts): void {
  const saveAccounts = (): void =>
    store.saveSetting("accounts", { assigned: accounts.assignments(), revoked: accounts.revocations() });
  app.get("/_sandbox/idempotency_keys", (c) => {
    const states: KeyState[] = [...store.realms.values()].flatMap((realm) =>
      [...realm.keys].map(([key, record]) => ({
        account: realm.account,
        livemode: realm.livemode,
        key,
        path: record.path,
        state: record.answer === null ? "in_use" : "finished",
        first_used_at: new Date(record.firstUsedMs).toISOString(),
        status: record.answer?.status ?? null,
      })),
    );
    return c.json(states);
  });
  app.post("/_sandbox/idempotency_keys/prune", async (c) => {
    const body = await readBody(c);
    const key = body.string("key");
    body.end();
    let pruned = 0;
    for (const realm of store.realms.values()) {
      for (const [name, record] of realm.keys) {
        // One in use stays: its request is running, and Stripe removes no key younger than a day.
        if (record.answer === null || (key !== undefined && key !== name)) continue;
        store.dropKey(realm, name);
        pruned += 1;
      }
    }
    store.commit();
    return c.json({ pruned });
  });
  app.post("/_sandbox/api_keys/assign", async (c) => {
    const body = await readBody(c);
    const key = body.string("key");
    const account = body.string("account");
    body.end();
    if (key === undefined || account === undefined) throw new ControlError("key and account are needed");
    accounts.assign(Accounts.digest(key), account);
    saveAccounts();
    return c.json({ account });
  });
  app.post("/_sandbox/api_keys/revoke", async (c) => {
    const body = await readBody(c);
    const key = body.string("key");
    body.end();
    if (key === undefined) throw new ControlError("key is missing");
    accounts.revoke(Accounts.digest(key));
    saveAccounts();
    return c.json({ revoked: true });
  });
}
