import { type ConnectionOptions, connect, ErrorCode, type NatsConnection, NatsError, nanos } from "nats";
import type { BrokerMessage, DeliveryResult, EventBroker } from "../domain/webhook.js";
import type { Logger } from "../lib/log.js";
import { awaitGreeting } from "./await-greeting.js";

export interface NatsBrokerOptions {
  /** `nats://` or `tls://`; a user name and password, or a token in the place of the user name. */
  readonly url: string;
  /** A deadline over one publication, making the connection included. */
  readonly timeoutMs: number;
  readonly log: Logger;
}

const DEFAULT_PORT = 4222;
const SUBJECTS = "pawl.events";
/** Made where no stream takes the subjects; an operator who wants other settings makes one before. */
const STREAM = "PAWL_EVENTS";
/** Longer than the longest wait between two tries, so that a try whose acknowledgement was lost adds nothing. */
const DUPLICATE_WINDOW_MS = 15 * 60_000;

/** `pawl.events.<tenant>.<type>`, e.g. `pawl.events.ten_….payment.succeeded`. */
function subjectOf(message: Pick<BrokerMessage, "tenantId" | "type">): string {
  return `${SUBJECTS}.${message.tenantId}.${message.type}`;
}

export function createNatsBroker(options: NatsBrokerOptions): EventBroker {
  return new NatsBroker(options);
}

/**
 * Publishes to JetStream, with the event's id as the message's, by which the stream drops duplicates. Connects when
 * there is something to publish, so a broker that is away holds up nothing but its own deliveries.
 */
class NatsBroker implements EventBroker {
  readonly #options: NatsBrokerOptions;
  #connection: Promise<NatsConnection> | null = null;
  #closed = false;

  constructor(options: NatsBrokerOptions) {
    this.#options = options;
  }

  async publish(message: BrokerMessage): Promise<DeliveryResult> {
    try {
      await this.#withDeadline(this.#store(message));
      return { delivered: true, status: null, fault: null, answer: null };
    } catch (error) {
      const code = error instanceof NatsError ? error.code : "unknown";
      this.#options.log.warn({ code, event: message.eventId }, "the broker did not take an event");
      return { delivered: false, status: null, fault: "broker_unavailable", answer: null };
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#drop();
  }

  /** Over all of it: a connection, a stream and a publication may each take their time. */
  async #withDeadline(work: Promise<void>): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(
        () => reject(new NatsError("no end in time", ErrorCode.Timeout)),
        this.#options.timeoutMs,
      );
    });
    try {
      await Promise.race([work, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  async #store(message: BrokerMessage): Promise<void> {
    const connection = await this.#connected();
    try {
      await this.#publish(connection, message);
    } catch (error) {
      if (isNoStream(error)) {
        await this.#addStream(connection);
        await this.#publish(connection, message);
        return;
      }
      // A connection that gives no answer may be dead without knowing it: the next try gets a new one.
      if (!isAnswered(error)) await this.#drop();
      throw error;
    }
  }

  async #publish(connection: NatsConnection, message: BrokerMessage): Promise<void> {
    const { timeoutMs: timeout } = this.#options;
    await connection
      .jetstream()
      .publish(subjectOf(message), message.body, { msgID: message.eventId, timeout });
  }

  async #addStream(connection: NatsConnection): Promise<void> {
    const manager = await connection.jetstreamManager({ timeout: this.#options.timeoutMs });
    await manager.streams.add({
      name: STREAM,
      subjects: [`${SUBJECTS}.>`],
      duplicate_window: nanos(DUPLICATE_WINDOW_MS),
    });
    this.#options.log.info({ stream: STREAM }, "stream for events made");
  }

  #connected(): Promise<NatsConnection> {
    if (this.#closed) return Promise.reject(new Error("the broker is closed"));
    this.#connection ??= this.#connect();
    return this.#connection;
  }

  async #connect(): Promise<NatsConnection> {
    const { url, timeoutMs } = this.#options;
    try {
      await awaitGreeting(addressOf(url), timeoutMs);
      const connection = await connect(connectionOptions(this.#options));
      void connection.closed().then(() => this.#forget());
      return connection;
    } catch (error) {
      this.#forget();
      throw error;
    }
  }

  #forget(): void {
    this.#connection = null;
  }

  async #drop(): Promise<void> {
    const connection = await this.#connection?.catch(() => null);
    this.#forget();
    await connection?.close();
  }
}

/** The delivery's own schedule decides about the next try, so the client makes none by itself. */
function connectionOptions({ url, timeoutMs }: NatsBrokerOptions): ConnectionOptions {
  const { protocol, username, password } = new URL(url);
  const { host, port } = addressOf(url);
  const user = decodeURIComponent(username);
  const pass = decodeURIComponent(password);
  const credentials = pass === "" ? { token: user } : { user, pass };
  return {
    servers: `${host.includes(":") ? `[${host}]` : host}:${port}`,
    name: "pawl",
    timeout: timeoutMs,
    reconnect: false,
    ...(protocol === "tls:" ? { tls: {} } : {}),
    ...(user === "" ? {} : credentials),
  };
}

function addressOf(url: string): { readonly host: string; readonly port: number } {
  const { hostname, port } = new URL(url);
  return {
    host: hostname.replace(/^\[(.*)\]$/, "$1"),
    port: port === "" ? DEFAULT_PORT : Number(port),
  };
}

/** No stream takes the subject (or JetStream is not there at all, which adding one then finds out). */
function isNoStream(error: unknown): boolean {
  return error instanceof NatsError && error.code === (ErrorCode.NoResponders as string);
}

/** The server has answered: the connection is alive. */
function isAnswered(error: unknown): boolean {
  return error instanceof NatsError && (error.isJetStreamError() || isNoStream(error));
}
