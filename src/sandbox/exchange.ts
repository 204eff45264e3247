import type { ServerResponse } from "node:http";
import type { Params } from "./form.js";
import type { Operation } from "./operation.js";
import type { LoggedRequest } from "./request-log.js";

/** One request on the wire, read whole, and the way to answer it. */
export interface Exchange {
  readonly response: ServerResponse;
  readonly requestId: string;
  readonly method: string;
  readonly path: string;
  /** Null for a path the sandbox does not serve. */
  readonly operation: Operation | null;
  readonly objectId: string | null;
  readonly params: Params;
  /** Why the body could not be read as a form; `params` is empty then. */
  readonly formError: string | null;
  readonly authorization: string | undefined;
  readonly idempotencyKey: string | null;
  readonly stripeVersion: string;
  readonly entry: LoggedRequest;
  /** Made when the key layer first asks for it. */
  fingerprint: string | null;
  /** The sandbox itself cut the connection. */
  cut: boolean;
}
