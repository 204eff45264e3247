// Compiles src and workers to dist, only what changed. One build at a time a checkout: tsc truncates a file before it
// writes it, so a command that starts while another one compiles could otherwise load half a module.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const COMPILER = join(ROOT, "node_modules/typescript-7/bin/tsc");
const LOCK = join(ROOT, "dist/.build-lock");
const LOCK_POLL_MS = 50;
/** A build takes seconds; a lock this old belongs to a process that died and whose pid lives on as another's. */
const LOCK_STALE_MS = 120_000;

function readOwner() {
  try {
    return { pid: Number(readFileSync(LOCK, "utf8")), sinceMs: Date.now() - statSync(LOCK).mtimeMs };
  } catch {
    return undefined;
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

/** False where dist cannot be written: a read-only checkout needs no lock, since nobody can compile into it. */
function takeLock() {
  for (;;) {
    try {
      mkdirSync(dirname(LOCK), { recursive: true });
      writeFileSync(LOCK, String(process.pid), { flag: "wx" });
      return true;
    } catch (error) {
      if (error.code !== "EEXIST") return false;
    }
    const owner = readOwner();
    // A pid of 0 is an owner that has created the file and not yet written its pid.
    const abandoned = owner !== undefined && owner.pid > 0 && !isAlive(owner.pid);
    if (abandoned || (owner?.sinceMs ?? 0) > LOCK_STALE_MS) rmSync(LOCK, { force: true });
    else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOCK_POLL_MS);
  }
}

function build() {
  if (!existsSync(COMPILER)) {
    if (existsSync(join(ROOT, "dist/src/cli/main.js")) || process.argv.includes("--if-possible")) return 0;
    process.stderr.write("pawl is not compiled: run npm ci with its development packages first\n");
    return 1;
  }
  const locked = takeLock();
  try {
    const compiled = spawnSync(process.execPath, [COMPILER, "-p", join(ROOT, "tsconfig.build.json")], {
      cwd: ROOT,
      // stdout is the command's own: a compiler's complaint must not land in a JSON document.
      stdio: ["ignore", 2, 2],
    });
    return compiled.status ?? 1;
  } finally {
    if (locked) rmSync(LOCK, { force: true });
  }
}

process.exitCode = build();
