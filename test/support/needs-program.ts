import { existsSync, readdirSync } from "node:fs";
import { delimiter, join } from "node:path";
import { describe, it } from "vitest";

const POSTGRES_VERSIONS_FOLDER = "/usr/lib/postgresql";

/** Where a program is, or undefined: PATH, then the folders that Debian keeps out of an ordinary user's PATH. */
export function findProgram(program: string): string | undefined {
  const versions = existsSync(POSTGRES_VERSIONS_FOLDER) ? readdirSync(POSTGRES_VERSIONS_FOLDER) : [];
  const folders = [
    ...(process.env["PATH"] ?? "").split(delimiter),
    "/usr/sbin",
    ...versions.map((version) => join(POSTGRES_VERSIONS_FOLDER, version, "bin")),
  ];
  return folders.map((folder) => join(folder, program)).find((path) => existsSync(path));
}

/**
 * A suite that needs a program which npm cannot install. Absent, it is left out by name; under CI that is a failure,
 * so that nothing is left out there unseen. `body` gets the program's path.
 */
export function describeWithProgram(program: string, name: string, body: (path: string) => void): void {
  const path = findProgram(program);
  if (path !== undefined) {
    describe(name, () => body(path));
    return;
  }
  const isRequired = (process.env["CI"] ?? "") !== "";
  describe.skipIf(!isRequired)(`${name} (needs ${program}, which is not installed)`, () => {
    it(`finds ${program}`, () => {
      throw new Error(`${program} is not installed; under CI its tests may not be left out`);
    });
  });
}
