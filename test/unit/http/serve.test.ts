import { connect } from "node:net";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createAdminApp } from "../../../src/http/admin/admin-app.js";
import { registry } from "../../../src/http/metrics.js";
import { serve } from "../../../src/http/serve.js";
import { operations } from "./fake-operations.js";
import {
  get,
  holdCreate,
  INPUT,
  PAYMENT,
  post,
  problemOf,
  STILL_PROCESSING,
  startApp,
  type TestServer,
  testDeps,
} from "./harness.js";

vi.mock(
  "../../../src/operations/authenticate.js",
  async () => (await import("./fake-operations.js")).operations,
);
vi.mock(
  "../../../src/operations/create-payment.js",
  async () => (await import("./fake-operations.js")).operations,
);
vi.mock(
  "../../../src/operations/read-payments.js",
  async () => (await import("./fake-operations.js")).operations,
);
vi.mock(
  "../../../src/operations/check-health.js",
  async () => (await import("./fake-operations.js")).operations,
);

function refused(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.on("connect", () => {
      socket.destroy();
      resolve(false);
    });
    socket.on("error", () => resolve(true));
  });
}

describe("a server that closes", () => {
  let app: TestServer;
  beforeEach(async () => {
    app = await startApp();
  });
  afterEach(() => app.server.close(0));

  it("lets a running request finish, tells its client to go, and takes no new connection", async () => {
    const held = holdCreate();
    const running = post(app, INPUT);
    await held.reached;
    const closed = app.server.close(10_000);
    expect(await refused(app.port)).toBe(true);
    held.answer(STILL_PROCESSING);
    const response = await running;
    expect(response.status).toBe(202);
    expect(response.headers.get("connection")).toBe("close");
    await closed;
  });

  it("does not wait for connections that are idle", async () => {
    const socket = connect(app.port, "127.0.0.1");
    const ended = new Promise((resolve) => socket.on("close", resolve));
    const answered = new Promise((resolve) => socket.once("data", resolve));
    socket.write("GET /docs HTTP/1.1\r\nHost: pawl\r\n\r\n");
    await answered;
    await app.server.close(60_000);
    await ended;
  });

  it("ends what still runs when the grace is over, and the operation hears of it", async () => {
    const held = holdCreate();
    const running = post(app, INPUT).catch((error: unknown) => error);
    const signal = await held.reached;
    await app.server.close(20);
    expect(await running).toBeInstanceOf(Error);
    await vi.waitFor(() => expect(signal.aborted).toBe(true));
    held.answer(STILL_PROCESSING);
  });

  it("has told a running operation that its client is gone", async () => {
    const held = holdCreate();
    const leave = new AbortController();
    const running = fetch(`${app.url}/v1/payments`, {
      method: "POST",
      headers: {
        authorization: "Bearer pawl_test_0123456789",
        "content-type": "application/json",
        "idempotency-key": "K",
      },
      body: JSON.stringify(INPUT),
      signal: leave.signal,
    }).catch((error: unknown) => error);
    const signal = await held.reached;
    leave.abort();
    await running;
    await vi.waitFor(() => expect(signal.aborted).toBe(true));
    held.answer(STILL_PROCESSING);
  });

  it("refuses to start on a port that is taken", async () => {
    await expect(
      serve({ fetch: () => new Response() }, { host: "127.0.0.1", port: app.port }),
    ).rejects.toThrow("EADDRINUSE");
  });
});

describe("a rate limit", () => {
  it("refuses one request too many within a second, before it is validated, for that key alone", async () => {
    const app = await startApp({ rateLimitPerSecond: 2 });
    vi.useFakeTimers({ toFake: ["Date"] });
    try {
      operations.authenticate.mockImplementation(async (_deps, secret) => ({
        tenantId: "ten_1",
        keyId: secret,
        scopes: ["payments:read", "payments:write"],
        livemode: false,
      }));
      const path = `/v1/payments/${PAYMENT.id}`;
      expect((await get(app, path)).status).toBe(200);
      expect((await post(app, INPUT)).status).toBe(202);
      const limited = await post(app, "{");
      expect(limited.headers.get("retry-after")).toBe("1");
      expect(await problemOf(limited)).toMatchObject({ code: "rate_limited", status: 429 });
      expect((await get(app, path, { Authorization: "Bearer another-key" })).status).toBe(200);
      vi.setSystemTime(Date.now() + 1_001);
      expect((await get(app, path)).status).toBe(200);
    } finally {
      vi.useRealTimers();
      await app.server.close(0);
    }
  });
});

describe("the operator's listener", () => {
  it("shows the requests of the API by pattern and status, and the process", async () => {
    const app = await startApp();
    const admin = await serve(createAdminApp(testDeps().deps), { host: "127.0.0.1", port: 0 });
    try {
      registry.resetMetrics();
      await get(app, `/v1/payments/${PAYMENT.id}`);
      await get(app, "/made/up/path");
      const text = await (await fetch(`http://127.0.0.1:${admin.port}/metrics`)).text();
      expect(text).toContain(
        'pawl_http_requests_total{method="GET",route="/v1/payments/:id",status="200"} 1',
      );
      expect(text).toContain(
        'pawl_http_request_duration_seconds_count{method="GET",route="(unknown)",status="404"} 1',
      );
      expect(text).toContain("process_cpu_user_seconds_total");
      expect(text).not.toContain(PAYMENT.id);
    } finally {
      await Promise.all([app.server.close(0), admin.close(0)]);
    }
  });

  it("lives while it cannot work, and is ready only when it can and is not stopping", async () => {
    let stopping = false;
    const admin = await serve(
      createAdminApp(testDeps().deps, () => stopping),
      { host: "127.0.0.1", port: 0 },
    );
    const status = async (path: string) => (await fetch(`http://127.0.0.1:${admin.port}${path}`)).status;
    try {
      operations.checkReadiness.mockResolvedValue({ ready: true, checks: { database: "ok" } });
      expect(await status("/readyz")).toBe(200);
      stopping = true;
      expect(await status("/readyz")).toBe(503);
      stopping = false;
      operations.checkReadiness.mockResolvedValue({ ready: false, checks: { database: "unreachable" } });
      expect(await status("/readyz")).toBe(503);
      expect(await status("/healthz")).toBe(200);
    } finally {
      await admin.close(0);
    }
  });
});
