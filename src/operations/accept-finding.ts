import { PawlError } from "../domain/errors.js";
import { mayBeAccepted } from "../domain/finding.js";
import { newId } from "../lib/ids.js";
import { readFinding, acceptFinding as writeAcceptance } from "../store/accepted-findings.js";
import { withDatabase } from "../store/db.js";
import { type Finding, type FindingName, listOpenFindings } from "../store/reconciliation.js";
import type { Deps } from "./deps.js";

type Accepting = Pick<Deps, "db">;

/** Each further look means that a comparison has seen it otherwise meanwhile. */
const MOST_LOOKS = 5;

/** What may be decided about a finding as it is; empty: nothing, it is mended by itself or closed. */
export function resolutionsOf(
  finding: Pick<Finding, "kind" | "state" | "ours" | "theirs">,
): readonly "accept"[] {
  return finding.state === "open" && mayBeAccepted(finding) ? ["accept"] : [];
}

/** Open differences with the provider, those first that were looked at longest ago. */
export function listDifferences(deps: Accepting, provider: string, limit: number): Promise<Finding[]> {
  return withDatabase(() => listOpenFindings(deps.db.sql, provider, { unseen: null, limit }));
}

/**
 * A person says that a difference may stand: it is told no more for as long as it is the same. Whatever it is about is
 * left as it is. Throws PawlError: not_found, review_closed (it is not open), resolution_not_allowed.
 */
export async function acceptFinding(
  deps: Accepting,
  { provider, ...name }: FindingName & { readonly provider: string },
  decision: { readonly reason: string; readonly by: string },
): Promise<Finding> {
  const { sql } = deps.db;
  for (let looks = 0; looks < MOST_LOOKS; looks += 1) {
    const finding = await withDatabase(() => readFinding(sql, provider, name));
    if (finding === null) throw new PawlError("not_found", "There is no such difference.");
    if (finding.state !== "open") throw closed(finding);
    if (resolutionsOf(finding).length === 0) {
      const what = `A ${finding.kind} is mended, by its repair or by \`pawl recover\`; nobody accepts it.`;
      throw new PawlError("resolution_not_allowed", what);
    }
    const acceptance = { provider, finding, ...decision, timelineId: newId("tl") };
    const accepted = await withDatabase(() => writeAcceptance(sql, acceptance));
    if (accepted !== null) return accepted;
  }
  throw new PawlError("service_unavailable", "The difference kept changing; look at it again.");
}

function closed({ state, accepted }: Finding): PawlError {
  const by = state === "accepted" && accepted !== null ? ` by ${accepted.by}: ${accepted.reason}` : "";
  return new PawlError("review_closed", `This difference is not open: it is ${state}${by}.`);
}
