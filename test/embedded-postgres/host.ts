// Stands for `npm start` in the tests: a process that has the database, prints where it is, and stops it on SIGTERM.
// SIGINT, which the terminal sends to the whole group, is what the database must not see.
import { startEmbeddedPostgres } from "../../src/embedded-postgres/embedded-postgres.js";
import { EmbeddedPostgresError } from "../../src/embedded-postgres/errors.js";
import { layoutOf, readLockFile } from "../../src/embedded-postgres/layout.js";
import type { Logger } from "../../src/lib/log.js";

const folder = process.argv[2] ?? "";
const silent = () => undefined;
const log = { info: silent, warn: silent, error: silent } as unknown as Logger;

process.on("SIGINT", silent);
try {
  const { url, adminUrl, port, stop } = await startEmbeddedPostgres({ folder, log });
  const pid = readLockFile(layoutOf(folder))?.pid ?? 0;
  const keepAlive = setInterval(silent, 60_000);
  process.once("SIGTERM", () => {
    clearInterval(keepAlive);
    void stop();
  });
  process.stdout.write(`${JSON.stringify({ url, adminUrl, port, pid })}\n`);
} catch (error) {
  if (!(error instanceof EmbeddedPostgresError)) throw error;
  process.stdout.write(`${JSON.stringify({ fault: error.fault, message: error.message })}\n`);
  process.exitCode = 1;
}
