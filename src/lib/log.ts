import { type DestinationStream, type Logger, pino } from "pino";

export type { Logger } from "pino";

/** Secrets by shape, wherever they stand in a text: provider keys, our keys, webhook and client secrets, URL passwords. */
const SECRET_SHAPES: readonly [RegExp, string][] = [
  [/\b([sr]k_(?:test|live))_[A-Za-z0-9_]+/g, "$1_[redacted]"],
  [/\b(pawl_(?:test|live))_[A-Za-z0-9_]+/g, "$1_[redacted]"],
  [/\bwhsec_[A-Za-z0-9+/=_-]+/g, "whsec_[redacted]"],
  [/\b(pi_[A-Za-z0-9]+)_secret_[A-Za-z0-9]+/g, "$1_secret_[redacted]"],
  [/(\w+:\/\/[^\s:/@]*):[^\s@/]+@/g, "$1:[redacted]@"],
  [/\b(?:\d[ -]?){12,18}\d\b/g, "[digits redacted]"],
];

/** Blanks anything that looks like a secret or a card number. */
export function redactText(text: string): string {
  return SECRET_SHAPES.reduce((kept, [shape, replacement]) => kept.replace(shape, replacement), text);
}

export interface LogOptions {
  readonly level: string;
  readonly destination?: DestinationStream;
}

/**
 * The one logger. Bodies of payments are never passed to it; errors are cut down to name, code and a
 * redacted message, since database errors carry SQL and parameters.
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

/** What a log line says of an error: never SQL, parameters or a provider's body. */
function describeError(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { type: typeof error };
  const cause = error.cause instanceof Error ? error.cause : undefined;
  const code = (error as { code?: unknown }).code ?? (cause as { code?: unknown } | undefined)?.code;
  // Frames alone: a message of several lines stands in the stack too.
  const stack = error.stack
    ?.split("\n")
    .filter((line) => line.startsWith("    at "))
    .slice(0, FRAMES_SHOWN)
    .join("\n");
  // Drizzle's message holds SQL and parameters, PostgreSQL's of class 22 the value that it could not read.
  const holdsData = error.message.startsWith("Failed query") || /^22/.test(String(code));
  const message = holdsData ? "query failed" : error.message;
  return { type: error.name, message, ...(code === undefined ? {} : { code }), stack };
}
