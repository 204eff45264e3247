import { randomBytes } from "node:crypto";
import {
  chmodSync,
  chownSync,
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { type Binaries, linkLibraries } from "./binaries.js";
import { EmbeddedPostgresError, errorCode, programFailed, reasonIn, WAY_OUT } from "./errors.js";
import { chooseLauncher, type Launcher, run } from "./launcher.js";
import { APPLICATION, type Layout, layoutOf, SUPERUSER } from "./layout.js";
import { isAlive } from "./processes.js";

const PASSWORD_BYTES = 24;
const LOCALE = ["--encoding=UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"];

/** Whether a whole cluster is there. Data that this user may not look at throws, since it is there too. */
export function isCreated(layout: Layout): boolean {
  const isThere = (path: string) => statSync(path, { throwIfNoEntry: false }) !== undefined;
  return isThere(join(layout.data, "PG_VERSION")) && isThere(layout.password);
}

/**
 * Makes the cluster beside its place and moves it there whole: a start that was killed half-way leaves nothing that
 * looks finished, and of two that start at once one move wins.
 */
export async function createCluster(binaries: Binaries, folder: string, isDurable: boolean): Promise<void> {
  mkdirSync(dirname(folder), { recursive: true });
  removeAbandoned(folder);
  const draft = layoutOf(`${folder}.new-${process.pid}-${randomBytes(4).toString("hex")}`);
  try {
    await fillCluster(binaries, draft, isDurable);
    moveIntoPlace(draft.folder, folder);
  } finally {
    rmSync(draft.folder, { recursive: true, force: true });
  }
}

async function fillCluster(binaries: Binaries, draft: Layout, isDurable: boolean): Promise<void> {
  mkdirSync(draft.folder);
  mkdirSync(draft.data);
  const launcher = await openFor(binaries, draft);
  const password = randomBytes(PASSWORD_BYTES).toString("base64url");
  writeFileSync(draft.password, password, { mode: 0o600 });
  if (launcher.user !== null) chownSync(draft.password, launcher.user.uid, launcher.user.gid);
  await initialise(binaries, launcher, draft, isDurable);
  await createApplicationDatabase(binaries, launcher, draft, password);
  if (launcher.user !== null) chownSync(draft.password, process.getuid?.() ?? 0, process.getgid?.() ?? 0);
}

/** Another user's server must get through the folder to its data; nobody else needs to see what is in it. */
async function openFor(binaries: Binaries, draft: Layout): Promise<Launcher> {
  chmodSync(draft.data, 0o700);
  chmodSync(draft.folder, process.getuid?.() === 0 ? 0o711 : 0o700);
  return chooseLauncher(binaries, draft.data, linkLibraries(binaries, draft.folder));
}

async function initialise(
  binaries: Binaries,
  launcher: Launcher,
  draft: Layout,
  isDurable: boolean,
): Promise<void> {
  const access = [`--username=${SUPERUSER}`, `--pwfile=${draft.password}`, "--auth=scram-sha-256"];
  const sync = isDurable ? [] : ["--no-sync"];
  // A failed set-up is looked at first (is the disk full?), and then deleted with its folder.
  const args = ["-D", draft.data, ...access, ...LOCALE, ...sync, "--no-clean"];
  const { code, output } = await run(launcher.start(binaries.initdb, args, "pipe"));
  if (code !== 0) throw creationFailed(draft, output);
}

/** In single-user mode each line is a statement; there is no server yet to connect to, and no client is needed. */
async function createApplicationDatabase(
  binaries: Binaries,
  launcher: Launcher,
  draft: Layout,
  password: string,
): Promise<void> {
  const statements = [
    `create role ${APPLICATION} login password '${password}';`,
    `create database ${APPLICATION} owner ${APPLICATION};`,
  ];
  const args = ["--single", "-D", draft.data, "-c", "exit_on_error=true", SUPERUSER];
  const child = launcher.start(binaries.postgres, args, "pipe");
  const { code, output } = await run(child, `${statements.join("\n")}\n`);
  if (code !== 0) throw creationFailed(draft, output.replaceAll(password, "[redacted]"));
}

function creationFailed(draft: Layout, output: string): EmbeddedPostgresError {
  const what = "the embedded PostgreSQL could not be set up";
  return programFailed(dirname(draft.folder), what, reasonIn(output));
}

function moveIntoPlace(draft: string, folder: string): void {
  try {
    renameSync(draft, folder);
  } catch (error) {
    const code = errorCode(error);
    if (code !== "ENOTEMPTY" && code !== "EEXIST") throw error;
    // Another start was faster, and its cluster is as good as this one.
    if (isCreated(layoutOf(folder))) return;
    throw new EmbeddedPostgresError(
      "start_failed",
      `${folder} holds something that is not Pawl's database: move it away, ${WAY_OUT}`,
      { cause: error },
    );
  }
  // Without this, a power cut could bring back the draft's name, and with it an empty database at the next start.
  const parent = openSync(dirname(folder), "r");
  fsyncSync(parent);
  closeSync(parent);
}

function removeAbandoned(folder: string): void {
  const prefix = `${basename(folder)}.new-`;
  for (const name of readdirSync(dirname(folder)).filter((entry) => entry.startsWith(prefix))) {
    const pid = Number(name.slice(prefix.length).split("-")[0]);
    if (!isAlive(pid)) rmSync(join(dirname(folder), name), { recursive: true, force: true });
  }
}
