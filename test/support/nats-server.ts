import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "./until.js";

export interface NatsServerOptions {
  readonly jetStream?: boolean;
  readonly credentials?: { readonly user: string; readonly password: string };
}

/** A NATS server of the test's own, whose streams outlive its restarts. */
export class NatsServer {
  readonly #folder = mkdtempSync(join(tmpdir(), "pawl-nats-"));
  #process: ChildProcess | null = null;
  #port = -1;

  private constructor(
    private readonly program: string,
    private readonly options: NatsServerOptions,
  ) {}

  static async start(program: string, options: NatsServerOptions = {}): Promise<NatsServer> {
    const server = new NatsServer(program, options);
    await server.start();
    return server;
  }

  get url(): string {
    const { credentials } = this.options;
    const user = credentials === undefined ? "" : `${credentials.user}:${credentials.password}@`;
    return `nats://${user}127.0.0.1:${this.#port}`;
  }

  /** Again on the port that it had. */
  async start(): Promise<void> {
    const config = join(this.#folder, "server.conf");
    writeFileSync(config, this.#lines().join("\n"));
    const child = spawn(this.program, ["-c", config], { stdio: "ignore" });
    this.#process = child;
    this.#port = await until(
      "a NATS server that listens",
      () => this.#portOf(child),
      (port) => port !== -1,
    );
  }

  #lines(): string[] {
    const { credentials, jetStream = true } = this.options;
    return [
      `listen: "127.0.0.1:${this.#port}"`,
      `ports_file_dir: "${this.#folder}"`,
      ...(jetStream ? [`jetstream { store_dir: "${this.#folder}" }`] : []),
      ...(credentials === undefined
        ? []
        : [`authorization { user: "${credentials.user}", password: "${credentials.password}" }`]),
    ];
  }

  /** The server writes where it listens into a file named after its process. */
  #portOf(child: ChildProcess): number {
    if (child.exitCode !== null) throw new Error("the NATS server did not start");
    const file = readdirSync(this.#folder).find((name) => name.endsWith(`_${child.pid}.ports`));
    if (file === undefined) return -1;
    const text = readFileSync(join(this.#folder, file), "utf8");
    return Number(/"nats:\/\/127\.0\.0\.1:(\d+)"/.exec(text)?.[1] ?? -1);
  }

  /** Ends it; its streams stay for the next start. */
  async crash(): Promise<void> {
    const child = this.#process;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once("close", resolve));
    child.kill("SIGKILL");
    await ended;
  }

  async stop(): Promise<void> {
    await this.crash();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
