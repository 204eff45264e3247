import { type DestinationStream, type Logger, pino } from "pino";

export type { Logger } from "pino";

/** Secrets by shape, wherever they stand in a text: provider keys, our keys, webhook and client secrets, URL passwords. */
const SECRET_SHAPES: readonly [RegExp, string][] = [
  [/\b([sr]k_(?:test|live))_[A-Za-z0-9_]+/g, "$1_[redacted]"],
  [/\b(pawl_(?:test|live))_[A-Za-z0-9_]+/g, "$1_[redacted]"],
  [/\bwhsec_[A-Za-z0-9+/=_-]+/g, "whsec_[redacted]"],
  [/\b(pi_[A-Za-z0-9]+)_secret_[A-Za-z0-9]+/g, "$1_secret_[redacted]"],
  [/(:\/\/[^\s:/@]*):[^\s@/]+@/g, "$1:[redacted]@"],
  [/\b(?:\d[ -]?){12,18}\d\b/g, "[digits redacted]"],
];

/** Blanks anything that looks like a secret or a card number, in time that grows with the text and no faster. */
export function redactText(text: string): string {
  return SECRET_SHAPES.reduce((kept, [shape, replacement]) => kept.replace(shape, replacement), text);
}

export interface LogOptions {
  readonly level: string;
  readonly destination?: DestinationStream;
}

/**
 * The one logger. Bodies of payments are never passed to it; errors are cut down to what `describeError` leaves of
 * them, since those of the database carry SQL, parameters and its address.
 */
export function createLogger(options: LogOptions): Logger {
  return pino(
    {
      level: options.level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: {
        paths: [
          "authorization",
          "*.authorization",
          "headers",
          "*.headers",
          "body",
          "*.body",
          "parameters",
          "*.parameters",
        ],
        censor: "[redacted]",
      },
      serializers: { err: describeError, error: describeError },
      hooks: {
        streamWrite: redactText,
      },
    },
    options.destination ?? pino.destination({ dest: 2, sync: false }),
  );
}

const FRAMES_SHOWN = 8;

/** What a log line says of an error: never SQL, parameters, a host's address or a provider's body (docs/adr/0008). */
function describeError(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { type: typeof error };
  const message = sayableMessage(error);
  const cause = error.cause instanceof Error ? error.cause : null;
  return {
    ...factsOf(error),
    ...(message === null ? {} : { message }),
    ...(cause === null ? {} : { cause: { ...factsOf(cause), stack: framesOf(cause) } }),
    stack: framesOf(error),
  };
}

/** The error in one line, where it is shown or kept as a text: as safe as what is logged of it. */
export function errorText(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const said = sayableMessage(error);
  const { type, code, constraint, table } = factsOf(error);
  const named = [code, constraint, table].filter((fact) => fact !== undefined).map(String);
  return said === null ? [type, ...named].join(" ") : `${type}: ${redactText(said)}`;
}

/** What errors of PostgreSQL, of its client and of sockets have, beside a message with SQL, a value or an address. */
const MARKS_OF_CLIENTS = ["severity", "query", "parameters", "params", "address", "port", "host", "hostname"];

/** Null: the message may hold what is told to nobody. Drizzle's starts with the statement that failed. */
function sayableMessage(error: Error): string | null {
  const isOfClient = MARKS_OF_CLIENTS.some((mark) => mark in error);
  return isOfClient || error.message.startsWith("Failed query") ? null : error.message;
}

interface ErrorFacts {
  readonly type: string;
  /** SQLSTATE, a system's code or one of ours; of the cause where the error itself has none. */
  readonly code?: unknown;
  readonly constraint?: unknown;
  readonly table?: unknown;
}

function factsOf(error: Error): ErrorFacts {
  const own = error as { code?: unknown; constraint_name?: unknown; table_name?: unknown };
  const from: Partial<ErrorFacts> = error.cause instanceof Error ? factsOf(error.cause) : {};
  const code = own.code ?? from.code;
  const constraint = own.constraint_name ?? from.constraint;
  const table = own.table_name ?? from.table;
  return {
    type: error.name,
    ...(code === undefined ? {} : { code }),
    ...(constraint === undefined ? {} : { constraint }),
    ...(table === undefined ? {} : { table }),
  };
}

/** Frames alone: a message of several lines stands in the stack too. */
function framesOf(error: Error): string | undefined {
  return error.stack
    ?.split("\n")
    .filter((line) => line.startsWith("    at "))
    .slice(0, FRAMES_SHOWN)
    .join("\n");
}
