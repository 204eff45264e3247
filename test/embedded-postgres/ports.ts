import { once } from "node:events";
import { createServer } from "node:net";

/** A port of 127.0.0.1 that something else listens on. */
export async function listen(): Promise<{ port: number; close: () => void }> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return { port: address.port, close: () => server.close() };
}

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const { port, close } = await listen();
  close();
  return port;
}
