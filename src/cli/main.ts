#!/usr/bin/env node
import { Command, CommanderError } from "commander";
import { ConfigError } from "../config.js";
import { PawlError } from "../domain/errors.js";
import { EmbeddedPostgresError } from "../embedded-postgres/errors.js";
import { errorText, redactText } from "../lib/log.js";
import {
  keysCommand,
  migrateCommand,
  paymentsCommand,
  purgeCommand,
  tenantsCommand,
} from "./data-commands.js";
import { doctorCommand } from "./doctor-command.js";
import { eventsCommand } from "./events-commands.js";
import { findingsCommand } from "./finding-commands.js";
import { CommandFailed, WrongUsage } from "./output.js";
import { reconcileCommand } from "./reconcile-command.js";
import { recoverCommand } from "./recover-command.js";
import { reviewsCommand } from "./review-commands.js";
import { sandboxCommand } from "./sandbox-command.js";
import { serveCommand, workerCommand } from "./serve.js";
import { startCommand } from "./start.js";

const WRONG_USAGE = 2;

const program = new Command("pawl").description("Payment orchestration: one charge for one intent.");
for (const command of [
  startCommand(),
  serveCommand(),
  workerCommand(),
  migrateCommand(),
  tenantsCommand(),
  keysCommand(),
  paymentsCommand(),
  reviewsCommand(),
  eventsCommand(),
  purgeCommand(),
  reconcileCommand(),
  findingsCommand(),
  recoverCommand(),
  doctorCommand(),
  sandboxCommand(),
]) {
  program.addCommand(command);
}
throwInsteadOfExit(program);

// Whoever read has gone: nobody is there to be told, and the exit code says the rest.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = report(error);
}
await Promise.all([process.stdout, process.stderr].map(written));
// What is still open now (a late answer, a kept-alive socket) must not keep the process.
process.exit();

/** A pipe takes 64 KiB at once, and what waits for its reader would be lost with the process. */
function written(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    // Whoever read it has gone.
    stream.once("error", () => resolve());
    stream.write("", () => resolve());
  });
}

/** Commander exits by itself otherwise, before streams are written. */
function throwInsteadOfExit(command: Command): void {
  command.exitOverride();
  for (const child of command.commands) throwInsteadOfExit(child);
}

/** What it is and where it happened; nothing of a statement or of the database's address. */
function unexpectedText(error: unknown): string {
  const stack = error instanceof Error ? (error.stack ?? "") : "";
  return [errorText(error), ...stack.split("\n").filter((line) => line.startsWith("    at "))].join("\n");
}

function report(error: unknown): number {
  // Commander has printed its own line.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : WRONG_USAGE;
  const isExpected =
    error instanceof ConfigError ||
    error instanceof CommandFailed ||
    error instanceof PawlError ||
    error instanceof EmbeddedPostgresError;
  const line = isExpected ? error.message : `unexpected: ${unexpectedText(error)}`;
  process.stderr.write(`pawl: ${redactText(line)}\n`);
  return error instanceof WrongUsage ? WRONG_USAGE : 1;
}
