import { Command } from "commander";
import { REVIEW_RESOLUTIONS, type ReviewResolution } from "../domain/instruction.js";
import {
  type Review,
  type ReviewEvidence,
  reviewDocument,
  reviewEvidenceDocument,
  versionOf,
} from "../domain/review-document.js";
import { containsCardNumber } from "../lib/card-number.js";
import { listOpenReviews } from "../operations/list-reviews.js";
import { showReview } from "../operations/read-reviews.js";
import { resolveReviewByCommand } from "../operations/resolve-review.js";
import { withStore } from "./environment.js";
import { CommandFailed, JSON_OPTION, type Json, print, table, WrongUsage } from "./output.js";
import { requireTenant } from "./tenant-option.js";

const MOST_REVIEWS_SHOWN = 100;
/** As the API has it. */
const MOST_REASON_CHARACTERS = 1_000;

export function reviewsCommand(): Command {
  return new Command("reviews")
    .description("what no machine may decide")
    .addCommand(listCommand())
    .addCommand(showCommand())
    .addCommand(resolveCommand());
}

function listCommand(): Command {
  return new Command("list")
    .description(`open reviews, oldest first, at most ${MOST_REVIEWS_SHOWN}`)
    .option("--tenant <id>", "of this tenant alone")
    .option(...JSON_OPTION)
    .action(async ({ tenant, json }: Json & { tenant?: string }) => {
      const open = await withStore(async (store) => {
        await requireTenant(store, tenant);
        return listOpenReviews(store, tenant ?? null, MOST_REVIEWS_SHOWN);
      });
      const data = open.map((review) => ({ ...reviewDocument(review), tenant_id: review.tenantId }));
      const rows = open.map((review) => [
        review.id,
        review.paymentId,
        subjectOf(review),
        review.reason,
        review.openedAt.toISOString(),
        review.resolution ?? "",
      ]);
      const head = ["ID", "PAYMENT", "ABOUT", "REASON", "OPENED", "RESOLVED AS"];
      print(json === true, { data }, table(head, rows));
    });
}

/** Which of the payment's attempts and objects it is about. */
function subjectOf({ attemptKind, refundId, objectId }: Review): string {
  return objectId ?? (refundId === null ? `its ${attemptKind}` : `refund ${refundId}`);
}

function showCommand(): Command {
  return new Command("show")
    .description("a review with its evidence, and what may be decided")
    .argument("<id>", "rev_…")
    .option(...JSON_OPTION)
    .action(async (id: string, { json }: Json) => {
      const evidence = await withStore((store) => showReview(store, id));
      if (evidence === null) throw new CommandFailed(`there is no review ${id}`);
      const document = { ...reviewEvidenceDocument(evidence), tenant_id: evidence.review.tenantId };
      print(json === true, document, linesOf(evidence));
    });
}

function linesOf({ review, payment, refund, attempt, dueAt, timeline, allowed }: ReviewEvidence): string[] {
  const entries = timeline.map((entry) => [
    entry.at.toISOString(),
    entry.to === null ? entry.kind : `${entry.from ?? "-"} → ${entry.to}`,
    entry.call ?? "",
    entry.outcome ?? "",
    entry.reason,
    entry.providerRequestId ?? "",
  ]);
  return [
    `${review.id}  ${review.closedAt === null ? "open" : `closed by a ${review.closedBy}`}  ${review.reason}`,
    `about ${subjectOf(review)}, version ${versionOf(review)}`,
    ...review.formerReasons.map(({ reason, until }) => `until ${until}: ${reason}`),
    `${payment.id}  ${payment.status}  ${payment.amount} ${payment.currency}`,
    ...(refund === null
      ? []
      : [`${refund.refund.id}  ${refund.refund.status}  ${refund.refund.amount} ${refund.refund.currency}`]),
    `${attempt.kind} ${attempt.id}  ${attempt.state}  ${attempt.providerPaymentId ?? "no provider object"}`,
    `unknown since ${attempt.unknownSince?.toISOString() ?? "-"}, next question ${dueAt?.toISOString() ?? "-"}`,
    ...(review.resolution === null
      ? []
      : [`resolved as ${review.resolution} by ${review.resolvedBy}: ${review.resolutionReason}`]),
    ...table(["AT", "WHAT", "CALL", "OUTCOME", "REASON", "PROVIDER REQUEST"], entries),
    ...(allowed.length === 0
      ? []
      : table(
          ["RESOLUTION", "WHAT IT DOES"],
          allowed.map(({ resolution, does }) => [resolution, does]),
        )),
  ];
}

interface Resolving extends Json {
  readonly as: string;
  readonly reason: string;
  readonly object?: string;
  readonly version?: string;
}

function resolveCommand(): Command {
  return new Command("resolve")
    .description("decide a review; a worker carries it out, after it has asked the provider")
    .argument("<id>", "rev_…")
    .requiredOption("--as <resolution>", REVIEW_RESOLUTIONS.join(", "))
    .requiredOption(
      "--reason <text>",
      `why, for whoever looks later; at most ${MOST_REASON_CHARACTERS} characters`,
    )
    .option("--object <id>", "the charge's object at the provider, where only you know or vouch for it")
    .option(
      "--version <number>",
      "of the review as you have seen it: nothing is decided if it has changed since",
    )
    .option(...JSON_OPTION)
    .action(async (id: string, { as, reason, object, version, json }: Resolving) => {
      const decision = {
        resolution: resolutionOf(as),
        reason: reasonOf(reason),
        providerObjectId: object ?? null,
        version: version === undefined ? null : versionFrom(version),
      };
      const review = await withStore((store) => resolveReviewByCommand(store, id, decision));
      print(json === true, { ...reviewDocument(review), tenant_id: review.tenantId }, [
        `${review.id} (${review.paymentId}, ${subjectOf(review)}) resolved as ${as}; \`pawl reviews show ${review.id}\` tells what came of it`,
      ]);
    });
}

function versionFrom(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new WrongUsage("--version: must be the version that `pawl reviews show` tells");
}

function resolutionOf(text: string): ReviewResolution {
  const known = REVIEW_RESOLUTIONS.find((resolution) => resolution === text);
  if (known === undefined) throw new WrongUsage(`--as: must be one of ${REVIEW_RESOLUTIONS.join(", ")}`);
  return known;
}

/** Throws WrongUsage. */
export function reasonOf(text: string): string {
  if (containsCardNumber(text)) throw new WrongUsage("--reason: looks like a card number");
  if (text.trim() !== "" && Array.from(text).length <= MOST_REASON_CHARACTERS) return text;
  throw new WrongUsage(`--reason: must have 1 to ${MOST_REASON_CHARACTERS} characters`);
}
