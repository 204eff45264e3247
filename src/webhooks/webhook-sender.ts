import {
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
  type RequestOptions,
} from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { isIP, type LookupFunction, type Socket } from "node:net";
import type { DeliveryResult, WebhookMessage, WebhookSender } from "../domain/webhook.js";
import type { Clock } from "../lib/clock.js";
import { faultOf, TryTimedOut } from "./delivery-fault.js";
import { readAnswer } from "./read-answer.js";
import {
  AddressRefused,
  allowedAddresses,
  askNameServers,
  askSystem,
  type ResolveName,
} from "./resolve-name.js";
import { signedHeaders } from "./signature.js";
import { hostOf, targetOf } from "./target.js";

export interface WebhookSenderOptions {
  /** A deadline over one whole try, from the name's look-up to the last byte of the answer. */
  readonly timeoutMs: number;
  /** http, and addresses that are not public: for development. */
  readonly allowPrivate: boolean;
  readonly userAgent: string;
  readonly clock: Clock;
  /** In place of the system's name servers and authorities, for tests. */
  readonly resolveName?: ResolveName;
  readonly authorities?: string;
}

export function createWebhookSender(options: WebhookSenderOptions): WebhookSender {
  return new HttpWebhookSender(options);
}

class HttpWebhookSender implements WebhookSender {
  readonly #options: WebhookSenderOptions;
  readonly #resolve: ResolveName;
  // A connection of its own for each try: the address is checked anew, and no kept one breaks under a request.
  readonly #http = new HttpAgent({ keepAlive: false });
  readonly #https: HttpsAgent;

  constructor(options: WebhookSenderOptions) {
    this.#options = options;
    this.#resolve = options.resolveName ?? (options.allowPrivate ? askSystem : askNameServers);
    const { authorities } = options;
    this.#https = new HttpsAgent({
      keepAlive: false,
      ...(authorities === undefined ? {} : { ca: authorities }),
    });
  }

  async mayTarget(text: string): Promise<boolean> {
    const { allowPrivate, clock, timeoutMs } = this.#options;
    const url = targetOf(text, allowPrivate);
    if (url === null) return false;
    if (allowPrivate || isIP(hostOf(url)) !== 0) return true;
    const patience = new AbortController();
    const answered = this.#addresses(hostOf(url)).then(
      () => true,
      () => false,
    );
    const allowed = await Promise.race([answered, clock.sleep(timeoutMs, patience.signal).then(() => false)]);
    patience.abort();
    return allowed;
  }

  async send(message: WebhookMessage): Promise<DeliveryResult> {
    const seen: { status: number | null; answer: string | null } = { status: null, answer: null };
    const aborting = new AbortController();
    const { timeoutMs } = this.#options;
    const timer = setTimeout(
      () => aborting.abort(new TryTimedOut(`no end within ${timeoutMs} ms`)),
      timeoutMs,
    );
    try {
      const incoming = await this.#post(message, aborting.signal);
      seen.status = incoming.statusCode ?? 0;
      await readAnswer(incoming, (text) => {
        seen.answer = text;
      });
      return judged(seen.status, seen.answer);
    } catch (error) {
      const fault = faultOf(aborting.signal.aborted ? aborting.signal.reason : error);
      return { delivered: false, ...seen, fault };
    } finally {
      clearTimeout(timer);
      // Whatever is left of the connection goes, however the try ended.
      aborting.abort();
    }
  }

  /** Resolves with the head of the answer. Nothing is followed, and nothing is sent twice. */
  async #post(message: WebhookMessage, signal: AbortSignal): Promise<IncomingMessage> {
    const { allowPrivate, clock, userAgent } = this.#options;
    const url = targetOf(message.url, allowPrivate);
    if (url === null) throw new AddressRefused("the URL is not one that may be called");
    const body = Buffer.from(message.body);
    const options: RequestOptions = {
      method: "POST",
      signal,
      lookup: this.#lookup,
      headers: {
        "content-type": "application/json",
        "content-length": body.length,
        "user-agent": userAgent,
        ...signedHeaders(message, clock.now()),
      },
    };
    return new Promise((resolve, reject) => {
      const outgoing =
        url.protocol === "https:"
          ? httpsRequest(url, { ...options, agent: this.#https })
          : httpRequest(url, { ...options, agent: this.#http });
      outgoing
        .on("response", resolve)
        .on("error", reject)
        // A receiver that switches protocols is given neither an answer nor an error by Node.
        .on("upgrade", (_, socket: Socket) => {
          socket.destroy();
          reject(new Error("the receiver switched protocols"));
        })
        .on("close", () => reject(new Error("the connection was closed without an answer")))
        .end(body);
    });
  }

  /** The addresses that are checked are the ones that are connected to: nobody looks the name up again. */
  readonly #lookup: LookupFunction = (name, options, done) => {
    this.#addresses(name).then(
      (addresses) => {
        const all = addresses.map((address) => ({ address, family: isIP(address) }));
        const [first] = all;
        if (options.all === true) done(null, all);
        else done(null, first?.address ?? "", first?.family ?? 0);
      },
      (error: unknown) => done(error as NodeJS.ErrnoException, ""),
    );
  };

  #addresses(name: string): Promise<readonly string[]> {
    return allowedAddresses(name, this.#resolve, this.#options.allowPrivate);
  }
}

/** Only a 2xx that came to its end is a delivery. */
function judged(status: number, answer: string | null): DeliveryResult {
  if (status >= 200 && status < 300) return { delivered: true, status, fault: null, answer };
  return { delivered: false, status, fault: status >= 300 && status < 400 ? "redirect" : "status", answer };
}
