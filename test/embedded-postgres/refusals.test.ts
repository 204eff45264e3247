import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { findBinaries } from "../../src/embedded-postgres/binaries.js";
import { explainFileErrors } from "../../src/embedded-postgres/errors.js";
import { listen } from "./ports.js";
import { firstRow } from "./queries.js";
import { refusal, useSharedFolder } from "./shared-folder.js";

const FOLDER = "checkout/.pawl/postgres";
const { folder, start, serverPid } = useSharedFolder();

describe("a start that cannot be", () => {
  it("leaves a folder alone that holds something else", async () => {
    const occupied = join(folder(), "..", "occupied", "postgres");
    mkdirSync(occupied, { recursive: true });
    writeFileSync(join(occupied, "notes"), "precious");
    expect(await refusal(start({ folder: occupied }))).toMatchObject({ fault: "start_failed" });
    expect(readdirSync(occupied)).toEqual(["notes"]);
    expect(readdirSync(dirname(occupied))).toEqual(["postgres"]);
  });

  it("says that Pawl is already running, and harms neither the server nor its data", async () => {
    const first = await start();
    const pid = serverPid();
    const error = await refusal(start());
    expect(error.fault).toBe("already_running");
    expect(error.message).toMatch(/already running.*\(pid \d+\)/);
    expect(serverPid()).toBe(pid);
    expect(await firstRow(first.url, "select 1 as one")).toEqual({ one: 1 });
  });

  it("names the port that is taken", async () => {
    const other = await listen();
    const error = await refusal(start({ port: other.port }));
    other.close();
    expect(error).toMatchObject({ fault: "port_taken" });
    expect(error.message).toContain(String(other.port));
  });

  it("gives the server's own reason, at once and without a lock left behind", async () => {
    const error = await refusal(start({ settings: { shared_buffers: "a lot" } }));
    expect(error.fault).toBe("start_failed");
    expect(error.message).toContain('invalid value for parameter "shared_buffers"');
    expect(await start()).toMatchObject({ port: expect.any(Number) as number });
  });

  it("names DATABASE_URL as the way out where there are no binaries for the platform", async () => {
    const error = await refusal(findBinaries("sunos-sparc"));
    expect(error.fault).toBe("unsupported_platform");
    expect(error.message).toContain("DATABASE_URL");
  });

  it("names the package that an install left out", async () => {
    const other = process.platform === "darwin" ? "linux-arm64" : "darwin-arm64";
    const error = await refusal(findBinaries(other));
    expect(error).toMatchObject({ fault: "unsupported_platform" });
    expect(error.message).toContain(`@embedded-postgres/${other}`);
  });

  it.each([
    ["ENOSPC", "disk_full"],
    ["EDQUOT", "disk_full"],
    ["EACCES", "permission"],
    ["EROFS", "permission"],
  ])("tells in one line what %s means", async (code, fault) => {
    const failing = explainFileErrors(FOLDER, () => {
      throw Object.assign(new Error("a system call failed"), { code });
    });
    const error = await refusal(failing);
    expect(error.fault).toBe(fault);
    expect(error.message).toContain(FOLDER);
  });
});
