import type { Clock } from "../lib/clock.js";
import type { Logger } from "../lib/log.js";
import { type Lookout, startLookout } from "../lib/lookout.js";
import { withDatabase } from "../store/db.js";
import { findWork, WORK, type Work } from "../store/waiting-work.js";
import type { Deps } from "./deps.js";

type LookDeps = Pick<Deps, "db" | "provider" | "broker" | "account">;

/** Whether the look that workers share finds this one's work; the others look for themselves. */
export function sharesLook(worker: string): worker is Work {
  return (WORK as readonly string[]).includes(worker);
}

/**
 * For which of these workers there is something to do now: one statement, however many ask. Attempts also where the
 * provider's account is not known yet, since their rounds are what asks for it again.
 */
export async function lookForWork(deps: LookDeps, asked: readonly Work[]): Promise<readonly Work[]> {
  const found = await withDatabase(() =>
    findWork(deps.db.sql, { asked, provider: deps.provider.name, toBroker: deps.broker !== null }),
  );
  const isNeeded = (work: Work) =>
    found.includes(work) || (work === "attempts" && deps.account.current().type !== "known");
  return asked.filter(isNeeded);
}

/** Looks for work of each of these workers as often as its interval says, and wakes those that have some. */
export function watchForWork(
  deps: LookDeps & { readonly clock: Clock; readonly log: Logger },
  intervalsMs: ReadonlyMap<Work, number>,
  wake: (worker: Work) => void,
): Lookout {
  return startLookout({
    intervalsMs,
    clock: deps.clock,
    look: (asked) => lookForWork(deps, asked),
    onFound: wake,
    onError: (error) => deps.log.error({ err: error }, "work could not be looked for"),
  });
}
