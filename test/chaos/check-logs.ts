import { readFileSync } from "node:fs";

interface Line {
  readonly level?: string;
  readonly msg?: string;
  readonly err?: { readonly type?: string; readonly message?: string; readonly code?: string };
}

export interface LogFindings {
  readonly faults: readonly string[];
  /** How often each error was logged: those of an outage are no fault. */
  readonly errors: ReadonlyMap<string, number>;
}

/** No process ends by an error that nobody caught, and none logs one as fatal. */
export function readLogs(paths: readonly string[]): LogFindings {
  const faults: string[] = [];
  const errors = new Map<string, number>();
  for (const path of paths) {
    const lines = readFileSync(path, "utf8").split("\n");
    // The last line of one that was killed may be half of one.
    for (const [at, text] of lines.entries()) {
      const line = parse(text);
      if (line === null) {
        if (at < lines.length - 1) faults.push(`${path}:${at + 1} is no line of the log: ${text}`);
      } else if (line.level === "fatal") faults.push(`${path}:${at + 1}: ${text}`);
      else if (line.level === "error") {
        const name = `${line.msg ?? "?"}: ${line.err?.code ?? line.err?.type ?? ""}`;
        errors.set(name, (errors.get(name) ?? 0) + 1);
      }
    }
  }
  return { faults, errors };
}

function parse(text: string): Line | null {
  if (text.trim() === "") return {};
  try {
    return JSON.parse(text) as Line;
  } catch {
    return null;
  }
}
