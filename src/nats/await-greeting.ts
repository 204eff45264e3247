import { connect } from "node:net";

/**
 * Resolves when the server has said its first word, as a NATS server does before anything else. The client leaves the
 * connection open for ever to a peer that accepts and stays silent, so such a one is found out here first.
 */
export async function awaitGreeting(
  { host, port }: { readonly host: string; readonly port: number },
  timeoutMs: number,
): Promise<void> {
  const socket = connect(port, host);
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once("data", () => resolve());
      socket.once("error", reject);
      socket.once("end", () => reject(new Error("the server ended the connection")));
      socket.setTimeout(timeoutMs, () => reject(new Error("the server says nothing")));
    });
  } finally {
    socket.destroy();
  }
}
