import type { IncomingMessage } from "node:http";
import { redactText } from "../lib/log.js";

/** Nobody's acknowledgement is longer; reading on would let one receiver keep us busy for its whole deadline. */
const MOST_BYTES = 64 * 1024;
const SHOWN_CHARACTERS = 500;
/** UTF-8 has at most four bytes a character. */
const KEPT_BYTES = 4 * SHOWN_CHARACTERS;

export class AnswerTooLong extends Error {
  override readonly name = "AnswerTooLong";
}

/**
 * Reads the answer to its end and calls `keep` with what its beginning says so far, so that a deadline in the middle
 * loses nothing. Rejects with AnswerTooLong, or with the connection's error.
 */
export async function readAnswer(incoming: IncomingMessage, keep: (text: string) => void): Promise<void> {
  const beginning: Buffer[] = [];
  let size = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    if (size < KEPT_BYTES) {
      beginning.push(chunk.subarray(0, KEPT_BYTES - size));
      keep(shownText(Buffer.concat(beginning)));
    }
    size += chunk.length;
    if (size > MOST_BYTES) throw new AnswerTooLong(`the answer has more than ${MOST_BYTES} bytes`);
  }
}

/** What can be stored and shown of bytes that a stranger sent. */
function shownText(bytes: Buffer): string {
  const text = bytes.toString("utf8").replaceAll(/[\p{Cc}\p{Cs}\ufffd]+/gu, " ");
  // A pair that the cut divides is no character.
  return redactText(text)
    .slice(0, SHOWN_CHARACTERS)
    .replace(/\p{Cs}$/u, "");
}
