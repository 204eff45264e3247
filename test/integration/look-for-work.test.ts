import { afterEach, expect, test, vi } from "vitest";
import { BROKER_ID, type EventBroker } from "../../src/domain/webhook.js";
import { lookForWork } from "../../src/operations/look-for-work.js";
import type { ProviderAccount } from "../../src/operations/provider-account.js";
import { readBalances } from "../../src/store/ledger.js";
import { WORK } from "../../src/store/waiting-work.js";
import { WORKERS } from "../../workers/index.js";
import { pay, until } from "../support/harness.js";
import { useStage } from "../support/stage.js";

const stage = useStage();
afterEach(() => {
  vi.restoreAllMocks();
});

test("a payment that was accepted is found for attempts and relay, once it is driven for the ledger, and then for nobody", async () => {
  const harness = await stage.start({ workers: [] });
  const { deps } = harness;
  expect(await lookForWork(deps, WORK)).toEqual([]);
  await pay(harness, { waitMs: 0 });
  expect(await lookForWork(deps, WORK)).toEqual(["attempts", "relay"]);
  expect(await lookForWork(deps, ["provider-events", "relay"])).toEqual(["relay"]);

  await deps.db
    .sql`update attempts set lease_owner = 'another', lease_expires_at = now() + interval '1 hour'`;
  expect(await lookForWork(deps, ["attempts"])).toEqual([]);
  await deps.db.sql`update attempts set lease_expires_at = now() - interval '1 second'`;
  expect(await lookForWork(deps, ["attempts"])).toEqual(["attempts"]);
  await deps.db.sql`update attempts set due_at = now() + interval '1 hour'`;
  expect(await lookForWork(deps, ["attempts"])).toEqual([]);
  await deps.db.sql`update attempts set due_at = now()`;

  await harness.another({ workers: ["attempts"] });
  await until(
    "the ledger's entries",
    () => lookForWork(deps, WORK),
    (found) => found.includes("ledger") && !found.includes("attempts"),
  );
  await harness.another({ workers: ["ledger", "relay"] });
  await until(
    "nothing left",
    () => lookForWork(deps, WORK),
    (found) => found.length === 0,
  );
  expect(await readBalances(deps.db.sql, harness.caller.tenantId)).not.toEqual([]);
});

test("a provider's event is found when it is due, for workers of that provider alone", async () => {
  const { deps } = await stage.start({ workers: [] });
  const { sql } = deps.db;
  await sql`insert into provider_events (provider, event_id, type, livemode, object_id, payload, due_at)
            values ('another', 'evt_1', 'charge.succeeded', false, 'ch_1', '{}', now())`;
  expect(await lookForWork(deps, WORK)).toEqual([]);
  await sql`update provider_events set provider = ${deps.provider.name}, due_at = now() + interval '1 hour'`;
  expect(await lookForWork(deps, WORK)).toEqual([]);
  await sql`update provider_events set due_at = now()`;
  expect(await lookForWork(deps, WORK)).toEqual(["provider-events"]);
  await sql`delete from provider_events`;
});

test("a delivery that is due is found behind those that are not, and the broker's by who has a broker", async () => {
  const { deps, caller } = await stage.start({ workers: [] });
  const { sql } = deps.db;
  const insert = (endpointId: string, due: string) => sql`
    insert into deliveries (tenant_id, endpoint_id, event_id, sequence, ordinal, due_at)
    values (${caller.tenantId}, ${endpointId}, ${`evt_${endpointId}`}, 1, 1, now() + ${due}::interval)`;
  await insert("we_1", "1 hour");
  await insert("we_3", "1 hour");
  expect(await lookForWork(deps, WORK)).toEqual([]);
  await insert("we_2", "-1 second");
  expect(await lookForWork(deps, WORK)).toEqual(["webhooks"]);
  await sql`delete from deliveries where endpoint_id = 'we_2'`;
  await insert(BROKER_ID, "-1 second");
  expect(await lookForWork(deps, WORK)).toEqual([]);
  expect(await lookForWork({ ...deps, broker: {} as EventBroker }, WORK)).toEqual(["webhooks"]);
  await sql`delete from deliveries`;
});

test("attempts are looked for while the provider's account is not known, since their round asks for it", async () => {
  const { deps } = await stage.start({ workers: [] });
  const account = { current: () => ({ type: "unknown", reason: "timeout" }) } as unknown as ProviderAccount;
  expect(await lookForWork({ ...deps, account }, WORK)).toEqual(["attempts"]);
  expect(await lookForWork({ ...deps, account }, ["relay"])).toEqual([]);
});

test("workers that have nothing to do have no round after their first, however often is looked for them", async () => {
  const idle = ["attempts", "provider-events", "webhooks", "ledger"] as const;
  const rounds = idle.map((name) => vi.spyOn(WORKERS[name], "runOnce"));
  const harness = await stage.start({
    workers: [...idle, "relay"],
    env: {
      POLL_INTERVAL_MS: "10",
      PROVIDER_EVENT_INTERVAL_MS: "10",
      RELAY_INTERVAL_MS: "10",
      WEBHOOK_INTERVAL_MS: "10",
      LEDGER_INTERVAL_MS: "10",
    },
  });
  const { sql } = harness.deps.db;
  for (let looks = 0; looks < 5; looks += 1) {
    await sql`insert into outbox (tenant_id, id, type, data)
              values (${harness.caller.tenantId}, ${`evt_${looks}`}, 'payment.created', '{}')`;
    await until(
      "a look that has found the event",
      () => sql`select from outbox where relayed_at is null`,
      (left) => left.length === 0,
    );
  }
  expect(rounds.map((round) => round.mock.calls.length)).toEqual([1, 1, 1, 1]);
});
