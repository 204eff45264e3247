import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { findBinaries, linkLibraries } from "../../src/embedded-postgres/binaries.js";
import { findEmbeddedPostgres } from "../../src/embedded-postgres/find-embedded-postgres.js";
import { chooseLauncher } from "../../src/embedded-postgres/launcher.js";
import { layoutOf, readLockFile } from "../../src/embedded-postgres/layout.js";
import { describeProcess } from "../../src/embedded-postgres/processes.js";
import { freePort, listen } from "./ports.js";
import { commitRow, firstRow, KEPT_ROW } from "./queries.js";
import { useSharedFolder } from "./shared-folder.js";

const { folder, start, serverPid } = useSharedFolder();

describe("the first start", () => {
  it("makes a UTF-8 database whose owner is no superuser, durable and behind a password", async () => {
    const { url } = await start();
    const settings = [
      "fsync",
      "full_page_writes",
      "synchronous_commit",
      "password_encryption",
      "listen_addresses",
    ];
    expect(
      await firstRow(
        url,
        `select current_user::text as role, current_database()::text as database,
           (select rolsuper from pg_roles where rolname = current_user) as is_superuser,
           pg_encoding_to_char(encoding)::text as encoding, datlocprovider::text as provider, datlocale as locale,
           ${settings.map((name) => `current_setting('${name}') as ${name}`).join(", ")}
         from pg_database where datname = current_database()`,
      ),
    ).toEqual({
      role: "pawl",
      database: "pawl",
      is_superuser: false,
      encoding: "UTF8",
      provider: "b",
      locale: "C.UTF-8",
      fsync: "on",
      full_page_writes: "on",
      synchronous_commit: "on",
      password_encryption: "scram-sha-256",
      listen_addresses: "127.0.0.1",
    });
    const wrong = new URL(url);
    wrong.password = "wrong";
    await expect(firstRow(wrong.href, "select 1")).rejects.toMatchObject({ code: "28P01" });
  });

  it("keeps password and data from other users", async () => {
    await start();
    const { password, data } = layoutOf(folder());
    expect(statSync(password).mode & 0o777).toBe(0o600);
    expect(statSync(password).uid).toBe(process.getuid?.());
    expect(statSync(data).mode & 0o777).toBe(0o700);
  });

  it("is not to be reached from another machine", async () => {
    const { url } = await start();
    const outer = Object.values(networkInterfaces())
      .flatMap((addresses) => addresses ?? [])
      .find((address) => address.family === "IPv4" && !address.internal);
    const elsewhere = new URL(url);
    // A machine without a network has other loopback addresses still (all of 127/8, on Linux).
    elsewhere.hostname = outer?.address ?? "127.0.0.2";
    await expect(firstRow(elsewhere.href, "select 1")).rejects.toMatchObject({ code: "ECONNREFUSED" });
  });
});

describe("a later start", () => {
  it("finds what was written before the stop", async () => {
    const first = await start();
    const readBack = await commitRow(first.url);
    await first.stop();
    const second = await start();
    expect(await firstRow(second.url, readBack)).toEqual(KEPT_ROW);
  });

  it("finds what was committed before a crash of the server", async () => {
    const first = await start();
    const readBack = await commitRow(first.url);
    await first.stop("immediate");
    const second = await start();
    expect(await firstRow(second.url, readBack)).toEqual(KEPT_ROW);
  });

  it("takes the port that it is given", async () => {
    const first = await start();
    await first.stop();
    const second = await start({ port: first.port });
    expect(second.url).toBe(first.url);
  });

  it("stops a server that lost its supervisor, and puts its own in its place", async () => {
    const first = await start();
    await first.stop();
    const orphan = await startUnwatched();
    const second = await start();
    expect(serverPid()).not.toBe(orphan.pid);
    expect((await describeProcess(orphan.pid ?? 0))?.isZombie ?? true).toBe(true);
    expect(await firstRow(second.url, "select 1 as one")).toEqual({ one: 1 });
  });

  it("does not mind that the pid of a dead server is another program's now", async () => {
    const first = await start();
    const lock = readFileSync(layoutOf(folder()).lockFile, "utf8");
    await first.stop();
    const launcher = await launcherHere();
    const other = launcher.start("/bin/sh", ["-c", "read line"], ["pipe", "ignore", "ignore"]);
    const stale = lock.replace(/^\d+/, String(other.pid));
    writeFileSync(layoutOf(folder()).lockFile, stale, { mode: 0o644 });
    const second = await start();
    expect(await firstRow(second.url, "select 1 as one")).toEqual({ one: 1 });
    expect(other.exitCode).toBeNull();
    other.kill();
  });
});

async function launcherHere() {
  const binaries = await findBinaries();
  return chooseLauncher(binaries, layoutOf(folder()).data, linkLibraries(binaries, folder()));
}

/** What a `kill -9` of Pawl leaves where the system cannot tie a server's life to it: marked with a pid that is gone. */
async function startUnwatched(): Promise<ChildProcess> {
  const gone = spawn(process.execPath, ["--version"], { stdio: "ignore" });
  await once(gone, "exit");
  const binaries = await findBinaries();
  const options = [
    "listen_addresses=127.0.0.1",
    "port=0",
    "unix_socket_directories=",
    `pawl.supervisor_pid=${gone.pid}`,
  ];
  const port = await freePort();
  const args = [
    "-D",
    layoutOf(folder()).data,
    ...options.flatMap((option) => ["-c", option.replace("port=0", `port=${port}`)]),
  ];
  const launcher = await launcherHere();
  const child = launcher.start(binaries.postgres, args, "ignore");
  await vi.waitFor(
    () => expect(readLockFile(layoutOf(folder()))).toMatchObject({ pid: child.pid, isReady: true }),
    10_000,
  );
  return child;
}

describe("finding the server of a running Pawl", () => {
  it("gives the same address as the start", async () => {
    const { url } = await start();
    expect(await findEmbeddedPostgres(folder())).toEqual({ url });
  });

  it("finds nothing where nothing was ever started, and nothing after the stop", async () => {
    expect(await findEmbeddedPostgres(folder())).toBeNull();
    const server = await start();
    await server.stop();
    expect(await findEmbeddedPostgres(folder())).toBeNull();
  });

  it("does not take another program for the server that the lock file names", async () => {
    const server = await start();
    const lock = readFileSync(layoutOf(folder()).lockFile, "utf8");
    await server.stop();
    const other = await listen();
    const lines = lock.split("\n");
    const claim = [String(process.pid), lines[1], lines[2], String(other.port), ...lines.slice(4)];
    writeFileSync(layoutOf(folder()).lockFile, claim.join("\n"));
    expect(await findEmbeddedPostgres(folder())).toBeNull();
    other.close();
  });
});

describe("a running server", () => {
  it("comes back on its port when it is killed, with what was committed", async () => {
    const server = await start();
    const readBack = await commitRow(server.url);
    const pid = serverPid();
    process.kill(pid, "SIGKILL");
    const row = await vi.waitFor(() => firstRow(server.url, readBack), { timeout: 15_000 });
    expect(row).toEqual(KEPT_ROW);
    expect(serverPid()).not.toBe(pid);
  });

  it("whose folder was deleted does not take the application with it", async () => {
    const deleted = join(folder(), "..", "deleted", "postgres");
    const server = await start({ folder: deleted });
    const { pid } = readLockFile(layoutOf(deleted))!;
    // The server is at work in it, and may make a file in a folder that has just been emptied.
    rmSync(deleted, { recursive: true, maxRetries: 10 });
    process.kill(pid, "SIGKILL");
    await vi.waitFor(async () => expect(await describeProcess(pid)).toBeNull());
    await server.stop();
    expect(existsSync(deleted)).toBe(false);
  });

  it("stays stopped after a stop, and can be stopped twice", async () => {
    const server = await start();
    await Promise.all([server.stop(), server.stop()]);
    await server.stop();
    await expect(firstRow(server.url, "select 1")).rejects.toMatchObject({ code: "ECONNREFUSED" });
    expect(readLockFile(layoutOf(folder()))).toBeNull();
  });

  it("does not write to its log what a statement that failed was about", async () => {
    const { url, stop } = await start();
    await firstRow(url, "create table names (name text primary key)");
    await firstRow(url, "insert into names values ('a secret')");
    await expect(firstRow(url, "insert into names values ('a secret')")).rejects.toMatchObject({
      code: "23505",
    });
    await stop();
    const text = readFileSync(layoutOf(folder()).log, "utf8");
    expect(text).toContain("ready to accept connections");
    expect(text).not.toContain("a secret");
  });
});
