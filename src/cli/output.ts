/** A refusal that the user can act on: one line on stderr, exit 1. */
export class CommandFailed extends Error {
  override readonly name: string = "CommandFailed";
}

/** What was typed makes no sense, whatever the data: one line on stderr, exit 2. */
export class WrongUsage extends CommandFailed {
  override readonly name = "WrongUsage";
}

/** Of a command that has JSON_OPTION. */
export interface Json {
  readonly json?: boolean;
}

export const JSON_OPTION = ["--json", "print one JSON document"] as const;

/** With `--json` one document and nothing else on stdout; otherwise the lines for people. */
export function print(json: boolean, document: unknown, lines: readonly string[]): void {
  process.stdout.write(json ? `${JSON.stringify(document)}\n` : lines.map((line) => `${line}\n`).join(""));
}

/** Columns of equal width, for people. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const widths = header.map((title, at) =>
    Math.max(title.length, ...rows.map((row) => (row[at] ?? "").length)),
  );
  return [header, ...rows].map((row) =>
    row
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}
