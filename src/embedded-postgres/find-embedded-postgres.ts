import { realpathSync } from "node:fs";
import { connect } from "node:net";
import { errorCode, explainFileErrors } from "./errors.js";
import { ADDRESS, APPLICATION, layoutOf, readIfThere, readLockFile, urlOf } from "./layout.js";
import { isServerOf } from "./make-way.js";
import { describeProcess } from "./processes.js";

const ANSWER_TIMEOUT_MS = 2_000;
/** SSLRequest, to which every PostgreSQL answers one byte, S or N. Source: PostgreSQL's protocol, "Message Formats". */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);

/** The application's database where another process of this checkout runs it; null where none answers. */
export async function findEmbeddedPostgres(folder: string): Promise<{ readonly url: string } | null> {
  return explainFileErrors(folder, async () => {
    const real = realpathIfThere(folder);
    if (real === null) return null;
    const layout = layoutOf(real);
    const lock = readLockFile(layout);
    const password = readIfThere(layout.password);
    if (lock === null || !lock.isReady || password === null) return null;
    const state = await describeProcess(lock.pid);
    if (state === null || !isServerOf(lock, state)) return null;
    if (!(await answers(lock.port))) return null;
    return { url: urlOf(APPLICATION, password, lock.port, APPLICATION) };
  });
}

function realpathIfThere(folder: string): string | null {
  try {
    return realpathSync(folder);
  } catch (error) {
    if (errorCode(error) === "ENOENT") return null;
    throw error;
  }
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: ADDRESS, port, timeout: ANSWER_TIMEOUT_MS });
    const end = (isPostgres: boolean) => {
      socket.destroy();
      resolve(isPostgres);
    };
    socket.once("connect", () => socket.write(SSL_REQUEST));
    socket.once("data", (data) => end(data[0] === 0x53 || data[0] === 0x4e));
    socket.once("timeout", () => end(false));
    socket.once("error", () => end(false));
    socket.once("close", () => end(false));
  });
}
