import { type ChildProcess, spawn } from "node:child_process";
import { SandboxControl } from "../../src/sandbox/index.js";
import type { RawAnswer, RawRequest } from "./support.js";
import { send } from "./support.js";

const MAIN = new URL("./sandbox-main.ts", import.meta.url).pathname;

interface Run {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number | null;
}

function spawned(argumentList: readonly string[]): ChildProcess {
  return spawn(process.execPath, ["--import", "tsx", MAIN, ...argumentList], {
    stdio: ["ignore", "pipe", "pipe"],
  });
}

/** Runs `pawl sandbox …` to its end. */
export function runSandboxCommand(...argumentList: string[]): Promise<Run> {
  const child = spawned(argumentList);
  let stdout = "";
  let stderr = "";
  child.stdout?.on("data", (chunk: Buffer) => (stdout += chunk.toString("utf8")));
  child.stderr?.on("data", (chunk: Buffer) => (stderr += chunk.toString("utf8")));
  return new Promise((resolve) => child.once("close", (code) => resolve({ stdout, stderr, code })));
}

/** `pawl sandbox --json` as a process of its own. */
export class SandboxProcess {
  readonly control: SandboxControl;
  readonly port: number;
  /** What it printed. */
  readonly line: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, line: string) {
    const addresses = JSON.parse(line) as { url: string; control_url: string };
    this.#child = child;
    this.line = line;
    this.port = Number(new URL(addresses.url).port);
    this.control = new SandboxControl(addresses.control_url);
  }

  static async start(...more: string[]): Promise<SandboxProcess> {
    const child = spawned(["--port", "0", "--control-port", "0", "--json", ...more]);
    let text = "";
    const line = await new Promise<string>((resolve, reject) => {
      child.stdout?.on("data", (chunk: Buffer) => {
        text += chunk.toString("utf8");
        if (text.endsWith("\n")) resolve(text);
      });
      child.stderr?.on("data", (chunk: Buffer) => (text += chunk.toString("utf8")));
      child.once("close", () => reject(new Error(`the sandbox did not start: ${text}`)));
    });
    return new SandboxProcess(child, line);
  }

  send(raw: RawRequest): Promise<RawAnswer> {
    return send(this, raw);
  }

  /** Ends the process and resolves to its exit code, null after a signal. */
  async end(signal: "SIGTERM" | "SIGKILL"): Promise<number | null> {
    const closed = new Promise<number | null>((resolve) => this.#child.once("close", resolve));
    this.#child.kill(signal);
    return closed;
  }
}
