import { mkdirSync, readdirSync, rmSync, watch } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { findEmbeddedPostgres } from "../../src/embedded-postgres/find-embedded-postgres.js";
import { layoutOf, readLockFile } from "../../src/embedded-postgres/layout.js";
import { describeProcess } from "../../src/embedded-postgres/processes.js";
import { type Checkout, type Host, makeCheckout, openFolder, running } from "./checkout.js";
import { commitRow, firstRow, KEPT_ROW } from "./queries.js";

// Several processes and set-ups a test, on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

let scratch: string;
let checkout: Checkout;
let hosts: Host[];

function run(): Host {
  const host = checkout.run();
  hosts.push(host);
  return host;
}

async function stop(host: Host): Promise<void> {
  host.process.kill("SIGTERM");
  // One that a test stopped must go on, to see that it is to end.
  host.process.kill("SIGCONT");
  await host.exited;
}

async function isGone(pid: number): Promise<boolean> {
  const state = await describeProcess(pid);
  return state === null || state.isZombie;
}

beforeAll(async () => {
  scratch = openFolder();
  checkout = await makeCheckout(join(scratch, "checkout"));
  hosts = [];
});

afterEach(async () => {
  await Promise.all(hosts.map(stop));
  hosts = [];
  rmSync(dirname(checkout.folder), { recursive: true, force: true });
});

afterAll(() => {
  rmSync(scratch, { recursive: true, force: true });
});

describe("a kill -9 of the process that has the database", () => {
  it("takes the server with it, and the next start works at once with all that was committed", async () => {
    const host = run();
    const first = await running(host);
    const readBack = await commitRow(first.url);
    host.process.kill("SIGKILL");
    await host.exited;
    const second = await running(run());
    expect(await firstRow(second.url, readBack)).toEqual(KEPT_ROW);
    expect(await isGone(first.pid)).toBe(true);
  });

  it.runIf(process.platform === "linux")("leaves no server even when there is no next start", async () => {
    const host = run();
    const { pid } = await running(host);
    host.process.kill("SIGKILL");
    await host.exited;
    await vi.waitFor(async () => expect(await isGone(pid)).toBe(true), { timeout: 10_000 });
    expect(readLockFile(layoutOf(checkout.folder))).toBeNull();
  });

  it("and of the server with it does not keep the next start from recovering", async () => {
    const host = run();
    const first = await running(host);
    const readBack = await commitRow(first.url);
    // The supervisor first, or it would restart what is killed; stopped, it cannot see that.
    host.process.kill("SIGSTOP");
    process.kill(first.pid, "SIGKILL");
    host.process.kill("SIGKILL");
    await host.exited;
    expect(await findEmbeddedPostgres(checkout.folder)).toBeNull();
    const second = await running(run());
    expect(await firstRow(second.url, readBack)).toEqual(KEPT_ROW);
  });

  it.runIf(process.platform === "linux")(
    "of the server works around a dead process that nobody collects",
    async () => {
      const host = run();
      const first = await running(host);
      // A stopped parent leaves its dead child in the process table, as a container without an init does for ever.
      host.process.kill("SIGSTOP");
      process.kill(first.pid, "SIGKILL");
      await vi.waitFor(async () => expect((await describeProcess(first.pid))?.isZombie).toBe(true));
      const { url } = await running(run());
      expect((await describeProcess(first.pid))?.isZombie).toBe(true);
      expect(await firstRow(url, "select 1 as one")).toEqual({ one: 1 });
      host.process.kill("SIGKILL");
      await host.exited;
    },
  );

  it("in the middle of the first set-up leaves nothing that the next start stumbles over", async () => {
    const parent = dirname(checkout.folder);
    mkdirSync(parent, { recursive: true });
    const began = new Promise<void>((resolve) => {
      const watcher = watch(parent, () => {
        watcher.close();
        resolve();
      });
    });
    const host = run();
    await began;
    host.process.kill("SIGKILL");
    await host.exited;
    expect(readdirSync(parent).filter((name) => !name.startsWith("postgres.new-"))).toEqual([]);
    const { url } = await running(run());
    expect(await firstRow(url, "select 1 as one")).toEqual({ one: 1 });
    expect(readdirSync(parent)).toEqual(["postgres"]);
  });
});

describe("two starts in one checkout", () => {
  it("at the same moment: one runs, the other says so in one line and exits 1", async () => {
    const both = [run(), run()];
    const reports = await Promise.all(both.map((host) => host.report));
    const [refused] = reports.flatMap((report) => ("message" in report ? [report] : []));
    expect(refused).toMatchObject({ fault: "already_running" });
    expect(refused?.message).not.toContain("\n");
    const [winner] = reports.flatMap((report) => ("url" in report ? [report] : []));
    expect(await firstRow(winner!.url, "select 1 as one")).toEqual({ one: 1 });
    expect(await both[reports.indexOf(refused!)]!.exited).toBe(1);
    expect(readdirSync(dirname(checkout.folder))).toEqual(["postgres"]);
  });

  it("one after the other: the second is refused, and the command line goes on finding the first", async () => {
    const { url } = await running(run());
    const second = run();
    expect(await second.report).toMatchObject({ fault: "already_running" });
    expect(await second.exited).toBe(1);
    expect(await findEmbeddedPostgres(checkout.folder)).toEqual({ url });
    expect(await firstRow(url, "select 1 as one")).toEqual({ one: 1 });
  });
});

describe("signals", () => {
  it("from the terminal's Ctrl-C do not reach the server, which stops when it is told to", async () => {
    const host = run();
    const { url, pid } = await running(host);
    process.kill(-host.process.pid!, "SIGINT");
    expect(await firstRow(url, "select 1 as one")).toEqual({ one: 1 });
    host.process.kill("SIGTERM");
    expect(await host.exited).toBe(0);
    expect(await isGone(pid)).toBe(true);
    expect(readLockFile(layoutOf(checkout.folder))).toBeNull();
  });
});
