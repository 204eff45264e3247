import postgres from "postgres";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type ApiAnswer, DECLINED, newKey, VISA } from "../support/api-client.js";
import { describeWithFaults, startSandboxProcess } from "../support/e2e-target.js";
import { type Cluster, startCluster } from "../support/postgres-cluster.js";
import type { RealProcess } from "../support/processes.js";
import { type Api, System, untilStatus } from "../support/system.js";
import { until } from "../support/until.js";

const PROVIDER_KEY = "sk_test_markedproviderkey";
const CARD_NUMBER = "4242424242424242";
const SPACED_CARD_NUMBER = "4242 4242 4242 4242";
/** Of the database, its statements and its client, as they would stand in a message that was passed on. */
const INTERNALS =
  /select |insert |update |relation|postgres|127\.0\.0\.1|ECONNREFUSED|node_modules|\.ts:|\.js:| {4}at /i;

describeWithFaults("secrets and internals", () => {
  let cluster: Cluster;
  let system: System;
  let api: Api;
  let processes: RealProcess[];
  const answers: ApiAnswer[] = [];
  /** What must not be seen, by name; more is added as it becomes known. */
  const marked = new Map<string, string>([
    ["the provider's key", PROVIDER_KEY],
    ["a card number", CARD_NUMBER],
    ["a card number with blanks", SPACED_CARD_NUMBER],
  ]);

  beforeAll(async () => {
    cluster = await startCluster({ durable: true });
    const target = await startSandboxProcess();
    system = await System.start(
      { databaseUrl: cluster.url, env: { STRIPE_SECRET_KEY: PROVIDER_KEY, LOG_LEVEL: "trace" } },
      target,
    );
    api = await system.api();
    processes = [api.process, (await system.worker()).process];
    marked.set("the database's password", new URL(cluster.url).password);
    marked.set("the API key", system.secret);
    marked.set("the API key's random part", system.secret.slice(-43));
  });
  afterAll(() => cluster.remove());

  const call = async (making: Promise<ApiAnswer>): Promise<ApiAnswer> => {
    const answer = await making;
    answers.push(answer);
    return answer;
  };

  it("stay out of logs, answers and events while everything goes wrong", async () => {
    await call(api.client.pay(VISA));
    await call(api.client.pay(DECLINED));
    const acting = await call(
      api.client.pay({
        ...VISA,
        payment_method: "pm_card_authenticationRequired",
        return_url: "https://shop.example/",
      }),
    );
    expect(acting.json.status).toBe("requires_action");
    const object = await system.control.getPaymentIntent(acting.json.provider_payment_id ?? "");
    const clientSecret = object.payment_intent.client_secret ?? "";
    await refusals();
    await providerFailures();
    await databaseFailures();
    for (const process of processes) await process.stop();

    // Whoever made the payment is given its client secret, for the customer to act with: only the log must not have it.
    expect(clientSecret).toMatch(/^pi_\w+_secret_\w+$/);
    for (const process of processes) expect(process.stderr + process.stdout).not.toContain(clientSecret);
    for (const [name, value] of marked) {
      expect(value.length, name).toBeGreaterThan(10);
      for (const process of processes)
        expect(process.stderr + process.stdout, `${name} in a log`).not.toContain(value);
      for (const answer of answers) {
        expect([...answer.headers].flat().join("\n") + answer.text, `${name} in an answer`).not.toContain(
          value,
        );
      }
    }
    // A statement's text or values would stand in the log where a driver's error was written out whole.
    for (const process of processes) {
      expect(process.stderr).not.toMatch(/insert into|select \S+ from|relation "|pm_card_visa/i);
      expect(process.stderr, "the database's address in a log").not.toContain(`:${cluster.port}`);
    }
    const faults = answers.filter((answer) => answer.status >= 500);
    expect(new Set(faults.map((answer) => answer.status))).toEqual(new Set([500, 503]));
    for (const fault of faults) {
      expect(fault.json.request_id).toMatch(/^req_/);
      expect(fault.json.request_id).toBe(fault.headers.get("X-Request-Id"));
      expect(fault.text).not.toMatch(INTERNALS);
    }
    await expectCleanEvents();
  });

  async function refusals(): Promise<void> {
    for (const text of [CARD_NUMBER, SPACED_CARD_NUMBER]) {
      for (const body of [
        { ...VISA, description: `card ${text}` },
        { ...VISA, payment_method: text.replaceAll(" ", "") },
        { ...VISA, metadata: { card: text } },
        { ...VISA, metadata: { [text]: "card" } },
      ]) {
        expect((await call(api.client.pay(body))).status).toBe(400);
      }
      expect((await call(api.client.pay(`{"description":"${text}`))).status).toBe(400);
      expect(
        (await call(api.client.get(`/v1/payments?merchant_order_id=${encodeURIComponent(text)}`))).status,
      ).toBeLessThan(500);
      await call(api.client.get(`/v1/${encodeURIComponent(text)}`));
    }
    const stranger = Object.assign(Object.create(api.client) as typeof api.client, {
      secret: `${system.secret.slice(0, -1)}x`,
    });
    marked.set("a wrong API key", stranger.secret);
    expect((await call(stranger.get("/v1/payments"))).status).toBe(401);
  }

  async function providerFailures(): Promise<void> {
    const { control } = system;
    const create = { match: { call: "payment_intents.create" } };
    for (const status of [401, 403, 500]) {
      await control.addFault({
        ...create,
        times: 2,
        fault: { type: "error", status, message: `Invalid API Key provided: ${PROVIDER_KEY}` },
      });
      const held = await call(api.client.pay(VISA, { prefer: "wait=1" }));
      await untilStatus(api.client, held.json.id ?? "", ["succeeded"]);
      await control.clearFaults();
    }
    const wrong = {
      type: "error",
      status: 400,
      error_type: "invalid_request_error",
      message: `No card ${CARD_NUMBER} for ${PROVIDER_KEY}`,
    } as const;
    await control.addFault({ ...create, fault: wrong });
    const rejected = await call(api.client.pay(VISA));
    expect(rejected.status, rejected.text).toBe(402);
    for (const type of ["garbage", "html", "cut_off", "empty", "reset"] as const) {
      await control.addFault({ ...create, fault: { type } });
      expect((await call(api.client.pay(VISA, { prefer: "wait=20" }))).status).toBe(201);
    }
    await control.closeListener();
    await call(api.client.pay(VISA, { prefer: "wait=1" }));
    await control.openListener();
  }

  async function databaseFailures(): Promise<void> {
    const admin = postgres(cluster.url, { max: 1, onnotice: () => undefined });
    await admin`alter table outbox rename to outbox_gone`;
    expect((await call(api.client.pay(VISA))).status).toBe(500);
    await admin`alter table outbox_gone rename to outbox`;
    await admin.end();
    await cluster.stop("immediate");
    const key = newKey();
    expect((await call(api.client.pay(VISA, { key }))).status).toBe(503);
    await call(api.client.get("/v1/payments"));
    await cluster.start();
    await until(
      "a payment after the database is back",
      () => call(api.client.pay(VISA, { key, prefer: "wait=5" })),
      (answer) => answer.status === 201,
    );
  }

  async function expectCleanEvents(): Promise<void> {
    const admin = postgres(cluster.url, { max: 1, onnotice: () => undefined });
    const events = await admin`select data::text as data from outbox`;
    await admin.end();
    expect(events.length).toBeGreaterThan(10);
    for (const [name, value] of marked) {
      expect(
        events.filter((event) => String(event["data"]).includes(value)),
        `${name} in an event`,
      ).toEqual([]);
    }
  }
});
