import { Command } from "commander";
import { readConfig, type WorkerName } from "../config.js";
import { findDatabase, findProvider, loggerOf } from "./environment.js";
import { print } from "./output.js";
import { runProcess, signalled } from "./run-process.js";

export function serveCommand(): Command {
  return new Command("serve")
    .description("the HTTP API alone; payments are driven by `pawl worker` processes")
    .option("--json", "print the addresses as one JSON document")
    .action((options: { json?: boolean }) => run(options.json === true, true));
}

export function workerCommand(): Command {
  return new Command("worker")
    .description("the background workers alone (WORKERS names which)")
    .option("--json", "print the addresses as one JSON document")
    .action((options: { json?: boolean }) => run(options.json === true, false));
}

async function run(json: boolean, api: boolean): Promise<void> {
  const stopAsked = signalled();
  const config = readConfig();
  const databaseUrl = await findDatabase(config);
  const workers: readonly WorkerName[] = api ? [] : config.workers;
  await runProcess(config, { databaseUrl, ...findProvider(config) }, loggerOf(config), {
    api,
    workers,
    stopAsked,
    afterwards: [],
    ready: (_pawl, listening) => {
      const admin = `http://${config.adminHost}:${listening.adminPort}`;
      const url = listening.apiPort === null ? null : `http://${config.host}:${listening.apiPort}`;
      print(json, { api_url: url, admin_url: admin, workers }, [
        url === null
          ? `Workers run: ${workers.join(", ")} (operator: ${admin})`
          : `Pawl listens on ${url} (operator: ${admin})`,
      ]);
    },
  });
}
