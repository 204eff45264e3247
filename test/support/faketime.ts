import { execFileSync } from "node:child_process";
import type { Environment } from "./processes.js";

/** The environment under which a program sees its wall clock this much ahead; its monotonic clock is left alone. */
export function clockAhead(faketime: string, seconds: number): Environment {
  const ask = (name: string) =>
    execFileSync(faketime, ["-f", `+${seconds}s`, "printenv", name], { encoding: "utf8" }).trim();
  // Set directly: the program `faketime` would stand between us and the process that we signal.
  return { LD_PRELOAD: ask("LD_PRELOAD"), FAKETIME: ask("FAKETIME"), FAKETIME_DONT_FAKE_MONOTONIC: "1" };
}
