import { execFile } from "node:child_process";
import { tmpdir } from "node:os";
import { promisify } from "node:util";
import { type Environment, inherited, MAIN } from "./process.js";

const MOST_OUTPUT_BYTES = 256 * 1024 * 1024;

/** Runs `pawl <args> --json` to its end; its one document. Throws when it exits otherwise than with 0 or `alsoCode`. */
export async function runCommand<T>(
  args: readonly string[],
  env: Environment,
  alsoCode: number | null = null,
): Promise<T> {
  const options = { cwd: tmpdir(), env: { ...inherited(), ...env }, maxBuffer: MOST_OUTPUT_BYTES };
  const run = promisify(execFile);
  try {
    return JSON.parse((await run(process.execPath, [MAIN, ...args, "--json"], options)).stdout) as T;
  } catch (error) {
    const { code, stdout, stderr } = error as { code?: number; stdout?: string; stderr?: string };
    if (alsoCode !== null && code === alsoCode) return JSON.parse(stdout ?? "") as T;
    throw new Error(`pawl ${args.join(" ")}: exit ${String(code)}: ${stderr ?? String(error)}`, {
      cause: error,
    });
  }
}
