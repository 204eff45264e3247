import postgres from "postgres";
import { afterAll, beforeAll, expect, it } from "vitest";
import { VISA } from "../support/api-client.js";
import { describeWithFaults, startSandboxProcess, type Target } from "../support/e2e-target.js";
import { type Cluster, startEmptyCluster } from "../support/postgres-cluster.js";
import { RealProcess } from "../support/processes.js";
import { expectSettled } from "../support/settle.js";
import { System } from "../support/system.js";

const PROCESSES = 10;

describeWithFaults("ten processes that start at once on an empty database", () => {
  let cluster: Cluster;
  let target: Target;

  beforeAll(async () => {
    cluster = await startEmptyCluster({ durable: false });
    target = await startSandboxProcess();
  });
  afterAll(() => cluster.remove());

  it("all come up on one schema, migrated once, with one secret of the installation", async () => {
    const env = {
      ...target.env,
      PORT: "0",
      ADMIN_PORT: "0",
      DATABASE_URL: cluster.url,
      DATABASE_POOL_MAX: "3",
    };
    const started = Array.from(
      { length: PROCESSES },
      (_, at) => new RealProcess([at % 2 === 0 ? "serve" : "worker", "--json"], { env }),
    );
    const said = await Promise.all(
      started.map((process) => process.firstLine<{ admin_url: string; api_url: string | null }>()),
    );
    for (const { admin_url: url } of said) expect((await fetch(`${url}/readyz`)).status).toBe(200);

    const admin = postgres(cluster.url, { max: 1, onnotice: () => undefined });
    const applied = await admin`select hash from drizzle.__drizzle_migrations`;
    expect(new Set(applied.map((row) => String(row["hash"]))).size).toBe(applied.length);
    expect(applied.length).toBeGreaterThan(0);
    expect(await admin`select * from installation`).toHaveLength(1);
    await admin.end();

    const system = await System.start({ databaseUrl: cluster.url }, target);
    const api = await system.api();
    const paid = await Promise.all(
      said.flatMap(({ api_url: url }) => (url === null ? [] : [api.client.at(url).pay(VISA)])),
    );
    expect(paid.map((answer) => answer.status)).toEqual(paid.map(() => 201));
    await expectSettled(
      api.client,
      system.control,
      paid.map((answer) => answer.json.id ?? ""),
    );
    expect((await Promise.all(started.map((process) => process.stop()))).map((exit) => exit.code)).toEqual(
      started.map(() => 0),
    );
  });
});
