import {
  chmodSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { packageRoot } from "../../src/lib/package-root.js";
import { ApiClient, newKey, VISA } from "../support/api-client.js";
import { describeWithProgram } from "../support/needs-program.js";
import { RealProcess, run, runJson } from "../support/processes.js";
import { until } from "../support/until.js";

interface Announcement {
  readonly api_url: string;
  readonly admin_url: string;
  readonly api_key: string;
  readonly sandbox_url: string;
  readonly sandbox_control_url: string;
}

/** Nothing set but free ports, since somebody may be using the usual ones. */
const NOTHING_SET = { PORT: "0", ADMIN_PORT: "0" };
const PACKAGE_PARTS = ["package.json", "dist", "drizzle", "docs"];

describe("pawl start, in a copy of the package with nothing set", () => {
  let root: string;

  beforeAll(() => {
    root = mkdtempSync(join(tmpdir(), "pawl-start-"));
    chmodSync(root, 0o755);
    for (const part of PACKAGE_PARTS)
      cpSync(join(packageRoot(), part), join(root, part), { recursive: true });
    symlinkSync(join(packageRoot(), "node_modules"), join(root, "node_modules"));
  });
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  const here = () => ({
    cwd: root,
    env: NOTHING_SET,
    program: [process.execPath, join(root, "dist/src/cli/main.js")],
  });
  const start = async () => {
    const process = new RealProcess(["start", "--json"], here());
    const said = await process.firstLine<Announcement>();
    return { process, said, client: new ApiClient(said.api_url, said.api_key) };
  };
  /** Null when no server of this folder runs. */
  const postgresPid = () => {
    const file = join(root, ".pawl/postgres/data/postmaster.pid");
    return existsSync(file) ? Number(readFileSync(file, "utf8").split("\n")[0]) : null;
  };
  const isAlive = (pid: number) => {
    try {
      return process.kill(pid, 0);
    } catch (error) {
      return (error as NodeJS.ErrnoException).code !== "ESRCH";
    }
  };

  it("makes a payment, keeps it and its key through kill -9, and stops cleanly on Ctrl-C", async () => {
    const first = await start();
    const key = newKey();
    const paid = await first.client.pay(VISA, { key });
    expect(paid.status, paid.text).toBe(201);
    await first.process.crash();

    const second = await start();
    expect(second.said.api_key).toBe(first.said.api_key);
    const replayed = await second.client.pay(VISA, { key });
    expect([replayed.status, replayed.text]).toEqual([201, paid.text]);
    expect(replayed.headers.get("Idempotent-Replayed")).toBe("true");
    // The sandbox kept its state, too: the object is still there to be asked about.
    const object = await fetch(
      `${second.said.sandbox_control_url}/_sandbox/payment_intents/${paid.json.provider_payment_id ?? ""}`,
    );
    expect(object.status).toBe(200);
    expect((await second.client.pay(VISA)).status).toBe(201);

    const pid = postgresPid();
    expect(pid).not.toBeNull();
    expect(await second.process.stop("SIGINT")).toEqual({ code: 0, signal: null });
    expect(postgresPid()).toBeNull();
    expect(isAlive(pid ?? 0)).toBe(false);
    await expect(fetch(second.said.sandbox_url)).rejects.toThrow();
    const secrets = readFileSync(join(root, ".pawl/development-key"), "utf8");
    expect(secrets.trim()).toBe(first.said.api_key);
    expect(statSync(join(root, ".pawl/development-key")).mode & 0o077).toBe(0);
    expect(first.process.stderr + second.process.stderr).not.toContain(first.said.api_key);
  });

  it("goes on with a payment that was under way when it was killed", async () => {
    const first = await start();
    const control = `${first.said.sandbox_control_url}/_sandbox`;
    const hold = { match: { call: "payment_intents.confirm" }, fault: { type: "hang", effect: "applied" } };
    await fetch(`${control}/faults`, {
      method: "POST",
      body: JSON.stringify(hold),
      headers: { "Content-Type": "application/json" },
    });
    const key = newKey();
    const accepted = await first.client.pay(VISA, { key, prefer: "respond-async" });
    await fetch(`${control}/held/wait`, {
      method: "POST",
      body: "{}",
      headers: { "Content-Type": "application/json" },
    });
    await first.process.crash();

    const second = new RealProcess(["start", "--json"], {
      ...here(),
      env: { ...NOTHING_SET, PROVIDER_TIMEOUT_MS: "500", ATTEMPT_LEASE_MS: "1000" },
    });
    const said = await second.firstLine<Announcement>();
    const client = new ApiClient(said.api_url, said.api_key);
    // The dead process's lease is a minute long. Nothing that was sent is sent again while it lasts.
    expect((await client.pay(VISA, { key })).json.payment?.id).toBe(accepted.json.id);
    const shown = await runJson<{ status: string }>(["payments", "show", accepted.json.id ?? ""], here());
    expect(shown.status).toBe("processing");
    expect((await second.stop()).code).toBe(0);
  });

  it("is found by the command line beside it, and refuses a second start in one line", async () => {
    const running = await start();
    const tenant = await runJson<{ id: string }>(["tenants", "create", "--name", "second"], here());
    const { secret } = await runJson<{ secret: string }>(["keys", "create", "--tenant", tenant.id], here());
    const client = new ApiClient(running.said.api_url, secret);
    const paid = await client.pay(VISA);
    expect(paid.status).toBe(201);
    const shown = await runJson<{ status: string }>(["payments", "show", paid.json.id ?? ""], here());
    expect(shown.status).toBe("succeeded");

    const second = await run(["start"], here());
    expect(second.exit).toEqual({ code: 1, signal: null });
    expect(second.stdout).toBe("");
    expect(second.stderr).toMatch(/^pawl: Pawl is already running on .*\n$/);
    expect((await client.pay(VISA)).status).toBe(201);

    const { port } = new URL(running.said.api_url);
    const beside = { ...here(), env: { ...here().env, PAWL_DATA_DIR: "beside", PORT: port } };
    const taken = await run(["start"], beside);
    expect(taken.exit).toEqual({ code: 1, signal: null });
    expect(taken.stderr).toContain(`pawl: PORT: cannot listen on 127.0.0.1:${port} (EADDRINUSE)\n`);
    expect(taken.stderr).not.toContain("unexpected");
    expect((await running.process.stop()).code).toBe(0);
    const alone = await run(["tenants", "list"], here());
    expect([alone.exit.code, alone.stderr.split("\n").length]).toEqual([1, 2]);
    expect(alone.stderr).toContain("DATABASE_URL");
  });

  it("stops cleanly when it is asked to while it starts", async () => {
    for (const saidFirst of ["", "embedded PostgreSQL started"]) {
      const starting = new RealProcess(["start"], here());
      if (saidFirst !== "") await starting.says(saidFirst);
      else
        await until(
          "a start under way",
          () => postgresPid(),
          (pid) => pid !== null,
        );
      const pid = postgresPid() ?? 0;
      expect(await starting.stop("SIGINT")).toEqual({ code: 0, signal: null });
      expect(postgresPid()).toBeNull();
      expect(isAlive(pid)).toBe(false);
    }
    const again = await start();
    expect((await again.client.pay(VISA)).status).toBe(201);
    expect((await again.process.stop("SIGINT")).code).toBe(0);
  });

  describeWithProgram("curl", "the printed curl line", () => {
    it("makes a payment when it is pasted into a shell", async () => {
      const running = new RealProcess(["start"], here());
      const printed = await until(
        "the printed lines",
        () => running.stdout,
        (text) => text.includes("pm_card_visa"),
      );
      expect(printed).toMatch(/Development API key: pawl_test_\w+/);
      const line = /^ {2}curl (?:.|\n)*?}'$/m.exec(printed)?.[0] ?? "";
      const pasted = await run(["-c", line], { program: ["/bin/sh"] });
      expect(JSON.parse(pasted.stdout)).toMatchObject({
        object: "payment",
        status: "succeeded",
        amount: 4200,
      });
      expect((await running.stop("SIGINT")).code).toBe(0);
    });
  });
});
