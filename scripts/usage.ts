import { parseArgs } from "node:util";

/** Typed wrongly: what is wrong, in a line. */
export class WrongUsage extends Error {
  override readonly name = "WrongUsage";
}

type Options = NonNullable<NonNullable<Parameters<typeof parseArgs>[0]>["options"]>;

/** As node's own; throws WrongUsage with its first sentence. */
export function optionsFrom<O extends Options>(words: readonly string[], options: O) {
  try {
    return parseArgs<{ args: string[]; options: O }>({ args: [...words], options }).values;
  } catch (error) {
    throw new WrongUsage((error as Error).message.split(/\. |\n/)[0]);
  }
}

/** A whole number from 1 on, or from `least`. */
export function wholeNumber(name: string, text: string, least = 1): number {
  const number = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(number) && number >= least) return number;
  throw new WrongUsage(
    `--${name}: must be a whole number from ${String(least)} on, and is ${JSON.stringify(text)}`,
  );
}

/** The exit code of a script: 0 after `--help`, 2 where what was typed makes no sense, with a line that says what. */
export async function runWith(
  usage: string,
  words: readonly string[],
  work: () => Promise<number>,
): Promise<number> {
  if (words.includes("--help")) {
    process.stdout.write(`${usage.trimEnd()}\n`);
    return 0;
  }
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof WrongUsage)) throw error;
    process.stderr.write(`${error.message}\n\n${usage.trimEnd()}\n`);
    return 2;
  }
}
