// Fails when src/store/schema*.ts says something that no migration in drizzle/ does. drizzle-kit writes what is missing
// and exits 0, after an error too, so it works on a copy and must say in words that there was nothing to write.
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";

const MIGRATIONS = "drizzle";
const SCHEMA = "src/store/schema*.ts";
const NOTHING_TO_DO = "No schema changes";

interface Journal {
  readonly entries: readonly { readonly tag: string; readonly when: number }[];
}

function faultsOfJournal(): string[] {
  const journal = JSON.parse(readFileSync(join(MIGRATIONS, "meta/_journal.json"), "utf8")) as Journal;
  const listed = journal.entries.map((entry) => `${entry.tag}.sql`);
  const present = readdirSync(MIGRATIONS).filter((name) => name.endsWith(".sql"));
  const inOrder = journal.entries.every(
    (entry, index) => entry.when > (journal.entries[index - 1]?.when ?? 0),
  );
  return [
    ...(listed.length === 0 ? ["the journal lists no migration"] : []),
    ...listed
      .filter((name) => !present.includes(name))
      .map((name) => `${name} is in the journal, not on disk`),
    ...present
      .filter((name) => !listed.includes(name))
      .map((name) => `${name} is on disk, not in the journal`),
    // The migrator applies what is newer than the last one applied: an older date would be skipped without a word.
    ...(inOrder ? [] : ["the journal's dates do not grow: a migration would be skipped"]),
  ];
}

function faultsOfSchema(): string[] {
  const copy = mkdtempSync(join(tmpdir(), "pawl-migrations-"));
  try {
    cpSync(MIGRATIONS, copy, { recursive: true });
    const run = spawnSync(
      process.execPath,
      [
        "node_modules/drizzle-kit/bin.cjs",
        "generate",
        "--dialect=postgresql",
        `--schema=${SCHEMA}`,
        // drizzle-kit puts `./` before the path: an absolute one would not be found.
        `--out=${relative(process.cwd(), copy)}`,
      ],
      { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] },
    );
    if (run.status === 0 && run.stdout.includes(NOTHING_TO_DO)) return [];
    const added = readdirSync(copy).filter((name) => !readdirSync(MIGRATIONS).includes(name));
    const statements = added.map((name) => readFileSync(join(copy, name), "utf8"));
    return [`${SCHEMA} and ${MIGRATIONS}/ differ:`, ...statements, run.stdout, run.stderr];
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

const faults = [...faultsOfJournal(), ...faultsOfSchema()];
for (const fault of faults) console.error(fault);
console.log(`migrations: ${faults.length === 0 ? "the same as the schema" : "not the same as the schema"}`);
process.exitCode = faults.length === 0 ? 0 : 1;
