import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, cpSync, existsSync, mkdirSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { type Checkout, type Host, makeCheckout, openFolder, running, setModes } from "./checkout.js";
import { commitRow, firstRow, KEPT_ROW } from "./queries.js";

const IS_ROOT = process.getuid?.() === 0;
const IS_LINUX = process.platform === "linux";

function idOf(user: string, flag: "-u" | "-g"): number {
  return Number(execFileSync("id", [flag, user], { encoding: "utf8" }));
}

/** Runs a command as an ordinary user, without any privilege of root's. */
function asUser(user: string): readonly string[] {
  return [
    "setpriv",
    `--reuid=${user}`,
    `--regid=${idOf(user, "-g")}`,
    "--clear-groups",
    "--inh-caps=-all",
    "--",
  ];
}

// Several processes and set-ups a test, on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

let scratch: string;
let checkout: Checkout;
let hosts: Host[];

function run(through?: readonly string[]): Host {
  const host = checkout.run(through);
  hosts.push(host);
  return host;
}

async function stopAll(): Promise<void> {
  for (const host of hosts) {
    host.process.kill("SIGTERM");
    await host.exited;
  }
  hosts = [];
}

async function expectToWork(through?: readonly string[]): Promise<void> {
  const { url } = await running(run(through));
  expect(await firstRow(url, "select 1 as one")).toEqual({ one: 1 });
}

beforeAll(async () => {
  scratch = openFolder();
  checkout = await makeCheckout(join(scratch, "closed", "checkout"));
  hosts = [];
});

afterEach(async () => {
  await stopAll();
  chmodSync(join(scratch, "closed"), 0o755);
  rmSync(dirname(checkout.folder), { recursive: true, force: true });
  setModes(checkout.root, 0o022);
});

afterAll(() => {
  rmSync(scratch, { recursive: true, force: true });
});

describe("a package whose postinstall script did not run", () => {
  it("is run without being written to", async () => {
    await expectToWork();
    expect(existsSync(join(checkout.native, "lib", "libpq.so.5"))).toBe(false);
  });
});

// Left out by name for an ordinary user, who cannot become another one.
describe.skipIf(!IS_ROOT || !IS_LINUX)("started by root (needs root on Linux)", () => {
  it("runs the server as another user, whom it lets into its data alone", async () => {
    await expectToWork();
    expect(statSync(join(checkout.folder, "data")).uid).not.toBe(0);
    expect(statSync(join(checkout.folder, "password")).uid).toBe(0);
    expect(statSync(checkout.folder).uid).toBe(0);
  });

  it("works below a folder that is closed to all others, as root's home is", async () => {
    chmodSync(join(scratch, "closed"), 0o700);
    await expectToWork();
    await stopAll();
    await expectToWork();
  });

  it("works below a closed folder where the checkout itself was made under a umask of 077", async () => {
    chmodSync(join(scratch, "closed"), 0o700);
    setModes(checkout.root, 0o077);
    await expectToWork();
  });

  it("works below a closed folder in a container that has no capability but the usual ones", async () => {
    chmodSync(join(scratch, "closed"), 0o700);
    const usual = ["chown", "dac_override", "fowner", "kill", "setgid", "setuid", "setpcap"];
    const bounds = ["-all", ...usual.map((name) => `+${name}`)].join(",");
    await expectToWork(["setpriv", `--bounding-set=${bounds}`, "--"]);
  });

  it("goes on with data that was copied by root", async () => {
    const first = await running(run());
    const readBack = await commitRow(first.url);
    await stopAll();
    cpSync(checkout.folder, `${checkout.folder}.copy`, { recursive: true, verbatimSymlinks: true });
    rmSync(checkout.folder, { recursive: true });
    renameSync(`${checkout.folder}.copy`, checkout.folder);
    const second = await running(run());
    expect(await firstRow(second.url, readBack)).toEqual(KEPT_ROW);
  });

  it("goes on with the data of an ordinary user as that user, who can still use it afterwards", async () => {
    mkdirSync(dirname(checkout.folder));
    chownSync(dirname(checkout.folder), idOf("nobody", "-u"), idOf("nobody", "-g"));
    await expectToWork(asUser("nobody"));
    await stopAll();
    await expectToWork();
    await stopAll();
    await expectToWork(asUser("nobody"));
  });
});

describe.skipIf(!IS_ROOT || !IS_LINUX)(
  "started by an ordinary user (the test needs root, to become one)",
  () => {
    it("works in a checkout of the user's, with a package that is root's", async () => {
      mkdirSync(dirname(checkout.folder));
      chownSync(dirname(checkout.folder), idOf("nobody", "-u"), idOf("nobody", "-g"));
      await expectToWork(asUser("nobody"));
      expect(statSync(checkout.folder).mode & 0o777).toBe(0o700);
      expect(statSync(join(checkout.folder, "data")).uid).toBe(idOf("nobody", "-u"));
    });

    it("says in one line which folder it may not write in", async () => {
      const host = run(asUser("nobody"));
      const report = await host.report;
      expect(report).toMatchObject({ fault: "permission" });
      expect("message" in report && report.message).toContain(checkout.folder);
      expect(await host.exited).toBe(1);
    });

    it("says in one line that the data is another user's", async () => {
      await expectToWork();
      await stopAll();
      expect(await run(asUser("nobody")).report).toMatchObject({ fault: "permission" });
    });
  },
);
