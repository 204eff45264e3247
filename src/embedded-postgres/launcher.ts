import { type ChildProcess, execFileSync, type StdioOptions, spawn } from "node:child_process";
import { lchownSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Binaries } from "./binaries.js";
import { EmbeddedPostgresError, errorCode, WAY_OUT } from "./errors.js";

/** Users that a server started by root may run as, best first. All are looked up, none is made. */
const SERVER_USERS = ["postgres", "_postgres", "nobody"];

/** setpriv(1): when Node dies, however it dies, the kernel sends SIGINT to the server, which is its fast shutdown. */
const DIE_WITH_PARENT = ["--pdeathsig", "INT"];

export interface ServerUser {
  readonly uid: number;
  readonly gid: number;
}

/**
 * How the programs are started here, with an environment of their own. To the kernel the parent is a thread, not a
 * process: a server that a worker thread starts ends with that thread.
 */
export interface Launcher {
  /** The user that the data must belong to; null where that is simply the user of this process. */
  readonly user: ServerUser | null;
  readonly start: (program: string, args: readonly string[], stdio: StdioOptions) => ChildProcess;
}

type Environment = Readonly<Record<string, string>>;

/** `via` replaces itself by the program, so that the pid of the child is the program's. */
interface Way {
  readonly via: readonly string[];
  readonly user: ServerUser | null;
}

/** Chooses by trying: permissions, ACLs, container policies and old tools are all seen in the one thing that counts. */
export async function chooseLauncher(binaries: Binaries, data: string, env: Environment): Promise<Launcher> {
  const user = settleServerUser(data);
  const refusals: string[] = [];
  for (const way of user === null ? ordinaryWays() : rootWays(user)) {
    const launcher = launcherOf(way, user, env);
    const refusal = await tryLauncher(launcher, binaries, data);
    if (refusal === null) return launcher;
    refusals.push(refusal);
  }
  const who = `user ${user?.uid ?? process.getuid?.() ?? "of this process"}`;
  const last = refusals.findLast((line) => line !== "") ?? "the data folder is out of its reach";
  throw new EmbeddedPostgresError(
    "not_runnable",
    `${who} cannot run the embedded PostgreSQL (${last}): put the checkout where that user can read it, ${WAY_OUT}`,
  );
}

function ordinaryWays(): readonly Way[] {
  return [
    { via: ["setpriv", ...DIE_WITH_PARENT, "--"], user: null },
    { via: [], user: null },
  ];
}

function rootWays(user: ServerUser): readonly Way[] {
  const setpriv = [
    "setpriv",
    ...["--reuid", String(user.uid), "--regid", String(user.gid), "--clear-groups"],
    ...DIE_WITH_PARENT,
  ];
  // A folder closed to others, as below /root: the server keeps one capability, to pass through. The securebit is for
  // access(2), by which PostgreSQL looks at its own program and which ignores capabilities otherwise.
  const passing = (capability: string) => [
    ...["--securebits", "+no_setuid_fixup"],
    ...["--inh-caps", `+${capability}`, "--ambient-caps", `+${capability}`],
  ];
  return [
    { via: [...setpriv, "--"], user: null },
    { via: [...setpriv, ...passing("dac_read_search"), "--"], user: null },
    // Containers are often denied the former; and programs unpacked under a umask of 077 need this one.
    { via: [...setpriv, ...passing("dac_override"), "--"], user: null },
    { via: [], user },
  ];
}

function launcherOf(way: Way, user: ServerUser | null, env: Environment): Launcher {
  return {
    user,
    start: (program, args, stdio) => {
      const [file = program, ...rest] = [...way.via, program, ...args];
      // Detached, so that Ctrl-C in the terminal does not stop the database before the application has drained.
      return spawn(file, rest, { stdio, env, cwd: "/", detached: true, ...way.user });
    },
  };
}

/** Null when the programs run and the data folder can be written in; else the last line of what was said. */
async function tryLauncher(launcher: Launcher, binaries: Binaries, data: string): Promise<string | null> {
  const script = 'test -w "$0" && "$1" --version && exec "$2" --version';
  const { code, output } = await run(
    launcher.start("/bin/sh", ["-c", script, data, binaries.initdb, binaries.postgres], "pipe"),
  );
  return code === 0 ? null : lastLine(output);
}

/** The owner of the data runs the server. Root may not: data of root's (new, or copied by root) is given away first. */
function settleServerUser(data: string): ServerUser | null {
  if (process.getuid?.() !== 0) return null;
  const { uid, gid } = statSync(data);
  if (uid !== 0) return { uid, gid };
  const user = findServerUser();
  try {
    const entries = readdirSync(data, { recursive: true, encoding: "utf8" });
    for (const path of entries) lchownSync(join(data, path), user.uid, user.gid);
    // Last, since its owner is what says that all of it was given.
    lchownSync(data, user.uid, user.gid);
  } catch (error) {
    // A container may have no other user than its root: then the kernel knows no number for one.
    if (errorCode(error) !== "EINVAL") throw error;
    throw new EmbeddedPostgresError(
      "not_runnable",
      `PostgreSQL does not run as root, and no other user can be had here: run as an ordinary user, ${WAY_OUT}`,
      { cause: error },
    );
  }
  return user;
}

function findServerUser(): ServerUser {
  const found = SERVER_USERS.map(lookUpUser).find((user) => user !== null);
  if (found !== undefined) return found;
  throw new EmbeddedPostgresError(
    "not_runnable",
    `PostgreSQL does not run as root and there is no user ${SERVER_USERS.join(" or ")}: run as an ordinary user, ${WAY_OUT}`,
  );
}

function lookUpUser(name: string): ServerUser | null {
  const ask = (flag: string) =>
    Number(execFileSync("id", [flag, name], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }));
  try {
    return { uid: ask("-u"), gid: ask("-g") };
  } catch {
    return null;
  }
}

export interface Run {
  readonly code: number | null;
  readonly output: string;
}

/** Waits for a program's end; what it printed on both channels is one text. A program that is not there has no code. */
export function run(child: ChildProcess, input = ""): Promise<Run> {
  return new Promise((resolve) => {
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text: string) => {
        output += text;
      });
    }
    child.once("error", (error) => {
      resolve({ code: null, output: error.message });
    });
    child.once("close", (code) => {
      resolve({ code, output });
    });
    // A program that ends before it has read its input says why by its exit code.
    child.stdin?.on("error", () => undefined).end(input);
  });
}

function lastLine(text: string): string {
  return text.trimEnd().split("\n").at(-1)?.trim() ?? "";
}
