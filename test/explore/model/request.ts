import type { Question } from "../../../src/domain/charge-change.js";
import type { ProviderCall } from "../../../src/domain/provider.js";

/** One request to Stripe, from when it is sent until it has been executed: a message that may land at any later step. */
export interface Request {
  /** Whose credential it carries. */
  readonly account: string;
  readonly call: ProviderCall | Question;
  /** Of a send. */
  readonly key: string | null;
  /** The id of the object that it is about; null where it makes one, or looks for one. */
  readonly target: string | null;
  /** Of a send: the text that was stored at the accept. */
  readonly parameters: string | null;
  /** Of a send: an earlier send of the call is unresolved. */
  readonly resend: boolean;
  /** Of a question that looks for an object: which attempt's, and from when on. */
  readonly attemptId: string | null;
  readonly createdFromMs: number | null;
  readonly sentAtMs: number;
}
