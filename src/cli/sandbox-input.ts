import { CommanderError, InvalidArgumentError } from "commander";
import { ControlError, type FaultRuleInput, readFaultRule } from "../sandbox/index.js";

/** A failure is one line on stderr and exit 1. */
export async function guarded(act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } catch (error) {
    if (error instanceof CommanderError) throw error;
    const cause = error instanceof Error && error.cause instanceof Error ? `: ${error.cause.message}` : "";
    process.stderr.write(`pawl sandbox: ${error instanceof Error ? error.message : String(error)}${cause}\n`);
    process.exitCode = 1;
  }
}

/** A fault rule from the command line. Wrong usage where it is none. */
export function ruleOf(text: string): FaultRuleInput {
  try {
    return readFaultRule(JSON.parse(text));
  } catch (error) {
    if (error instanceof ControlError || error instanceof SyntaxError)
      throw new InvalidArgumentError(error.message);
    throw error;
  }
}

export function wholeNumber(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError("It must be a whole number.");
  return Number(text);
}
