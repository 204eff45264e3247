import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { StringDecoder } from "node:string_decoder";
import type Stripe from "stripe";
import type { KeyRecord } from "./key-record.js";
import type { StoredPaymentMethod } from "./payment-methods.js";
import type { RowKind, Rows } from "./rows.js";

type RowOperation = { [Kind in RowKind]: ["row", realm: string, kind: Kind, Rows[Kind]] }[RowKind];

export type JournalOperation =
  | ["payment_intent", realm: string, Stripe.PaymentIntent]
  | ["payment_intent_dropped", realm: string, id: string]
  | ["charge", realm: string, Stripe.Charge]
  | RowOperation
  | ["payment_method", realm: string, StoredPaymentMethod]
  | ["event", realm: string, Stripe.Event]
  | ["key", realm: string, key: string, KeyRecord]
  | ["key_dropped", realm: string, key: string]
  | ["setting", name: string, value: unknown];

/** Stands in a line for an object written earlier in the same line: an event's or a saved answer's copy of it. */
interface SameAs {
  readonly $same_as: number;
}

/** What the journal reads of an event. Spreading Stripe's union of all events would cost the type checker minutes. */
interface EventShape {
  readonly data: { readonly object: object };
}

const FILE_NAME = "journal.jsonl";
/** Bytes. */
const READ_AT_ONCE = 1_048_576;

/**
 * Append-only file, one line a request. A line is in the operating system's hands before the answer goes out, which
 * outlives `kill -9` of the process; a power failure may take the last lines (there is no fsync: it is a sandbox).
 */
export class Journal {
  readonly #path: string;
  #file: number;

  constructor(directory: string) {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    this.#path = join(directory, FILE_NAME);
    this.#file = openSync(this.#path, "a", 0o600);
  }

  /** Every operation kept. A last line cut short by a kill is left out: its request was not answered. */
  *read(): Generator<JournalOperation> {
    if (!existsSync(this.#path)) return;
    let number = 0;
    for (const { line, isWhole } of linesOf(this.#path)) {
      number += 1;
      if (line === "") continue;
      const operations = parsed(line);
      if (operations !== null) yield* expand(operations);
      else if (isWhole) throw new Error(`sandbox journal ${this.#path}: line ${number} is unreadable`);
    }
  }

  append(operations: JournalOperation[]): void {
    writeWhole(this.#file, `${JSON.stringify(compact(operations))}\n`);
  }

  /** Replaces the file by one that holds these operations, in one rename. */
  rewrite(operations: JournalOperation[]): void {
    const next = `${this.#path}.next`;
    writeFileSync(next, "", { mode: 0o600 });
    const file = openSync(next, "a", 0o600);
    for (const operation of operations) writeWhole(file, `${JSON.stringify([operation])}\n`);
    renameSync(next, this.#path);
    closeSync(this.#file);
    this.#file = file;
  }

  close(): void {
    closeSync(this.#file);
  }
}

/** Null: it is cut short. */
function parsed(line: string): JournalOperation[] | null {
  try {
    return JSON.parse(line) as JournalOperation[];
  } catch {
    return null;
  }
}

/** Lines one by one: a journal may be longer than the longest string. `isWhole`: its end was written. */
function* linesOf(path: string): Generator<{ readonly line: string; readonly isWhole: boolean }> {
  const file = openSync(path, "r");
  try {
    const decoder = new StringDecoder("utf8");
    const bytes = Buffer.allocUnsafe(READ_AT_ONCE);
    let rest = "";
    for (let read = readSync(file, bytes); read > 0; read = readSync(file, bytes)) {
      const lines = (rest + decoder.write(bytes.subarray(0, read))).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) yield { line, isWhole: true };
    }
    yield { line: rest + decoder.end(), isWhole: false };
  } finally {
    closeSync(file);
  }
}

function writeWhole(file: number, text: string): void {
  const bytes = Buffer.from(text, "utf8");
  let written = 0;
  while (written < bytes.length) written += writeSync(file, bytes, written);
}

/** The object of an operation that events and answers show as it is. */
function objectOf(operation: JournalOperation | undefined): object | null {
  switch (operation?.[0]) {
    case "payment_intent":
    case "charge":
      return operation[2];
    case "row":
      return operation[3];
    default:
      return null;
  }
}

// The same object would stand three times in a line: as itself, in its event and in the key's saved answer.
function compact(operations: JournalOperation[]): unknown[] {
  const places = new Map<object, number>();
  return operations.map((operation, place) => {
    const object = objectOf(operation);
    if (object !== null) {
      places.set(object, place);
      return operation;
    }
    if (operation[0] === "event") {
      const event: EventShape = operation[2];
      const same = places.get(event.data.object);
      if (same === undefined) return operation;
      return ["event", operation[1], { ...event, data: { ...event.data, object: { $same_as: same } } }];
    }
    if (operation[0] === "key" && operation[3].answer !== null) {
      const { answer } = operation[3];
      const same = places.get(answer.body);
      if (same === undefined) return operation;
      return [
        "key",
        operation[1],
        operation[2],
        { ...operation[3], answer: { ...answer, body: { $same_as: same } } },
      ];
    }
    return operation;
  });
}

function expand(operations: JournalOperation[]): JournalOperation[] {
  const original = (value: object): object => {
    const place = (value as Partial<SameAs>).$same_as;
    return (place === undefined ? null : objectOf(operations[place])) ?? value;
  };
  return operations.map((operation) => {
    if (operation[0] === "event") {
      const event: EventShape = operation[2];
      const object = original(event.data.object);
      return ["event", operation[1], { ...event, data: { ...event.data, object } } as Stripe.Event];
    }
    if (operation[0] === "key" && operation[3].answer !== null) {
      const { answer } = operation[3];
      return [
        "key",
        operation[1],
        operation[2],
        { ...operation[3], answer: { ...answer, body: original(answer.body) } },
      ];
    }
    return operation;
  });
}
