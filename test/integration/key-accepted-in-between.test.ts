import { expect, test } from "vitest";
import type { Deps } from "../../src/operations/deps.js";
import { refusalOfFormerKey } from "../../src/operations/keyed-request.js";
import { type Harness, newKey, pay } from "../support/harness.js";
import { useStage } from "../support/stage.js";

const stage = useStage();

/** A process to whom something happens right before it looks for attempts of a key that has no record. */
function beforeItLooksForRuns({ deps }: Harness, happens: () => Promise<unknown>): Deps {
  let isOver = false;
  const sql = new Proxy(deps.db.sql, {
    apply: (target, self, parts: [readonly string[] | string, ...unknown[]]) => {
      const query = () => Reflect.apply(target, self, parts) as Promise<unknown>;
      if (isOver || !String(parts[0]).includes("coalesce(a.idempotency_key =")) return query();
      isOver = true;
      return happens().then(query);
    },
  });
  const recovering = new Proxy(deps.recovery, {
    // As it last looked: it does not begin with an accept then.
    get: (target, name) =>
      name === "isRecovering" ? () => true : (Reflect.get(target, name, target) as unknown),
  });
  return { ...deps, db: { ...deps.db, sql }, recovery: recovering };
}

test("a key that another request has just begun with is in progress, and not taken for an expired one", async () => {
  const harness = await stage.start({ workers: [] });
  const key = newKey();
  const deps = beforeItLooksForRuns(harness, () => pay(harness, { key, waitMs: 0 }));
  await expect(pay(harness, { key, waitMs: 0, deps })).rejects.toMatchObject({
    code: "idempotency_key_in_progress",
  });
  await harness.another();
});

test("the same holds for the keys of what follows a payment", async () => {
  const harness = await stage.start({ workers: [] });
  const key = newKey();
  const deps = beforeItLooksForRuns(harness, () => pay(harness, { key, waitMs: 0 }));
  const context = { requestId: "req_1", traceparent: null, signal: new AbortController().signal };
  const wait = { waitMs: 0, explicit: false };
  const request = {
    caller: harness.caller,
    context,
    operation: "payments.create",
    key,
    fingerprint: "",
    wait,
  };
  expect(await refusalOfFormerKey(deps, request)).toBeNull();
  await harness.another();
});
