import { Command } from "commander";
import { REVIEW_RESOLUTIONS, type ReviewResolution } from "../domain/instruction.js";
import { type ReviewEvidence, reviewDocument, reviewEvidenceDocument } from "../domain/review-document.js";
import { containsCardNumber } from "../lib/card-number.js";
import { listOpenReviews } from "../operations/list-reviews.js";
import { showReview } from "../operations/read-reviews.js";
import { resolveReviewByCommand } from "../operations/resolve-review.js";
import { withStore } from "./environment.js";
import { CommandFailed, print, table } from "./output.js";

interface Json {
  readonly json?: boolean;
}

const JSON_OPTION = ["--json", "print one JSON document"] as const;
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
      const open = await withStore((store) => listOpenReviews(store, tenant ?? null, MOST_REVIEWS_SHOWN));
      const data = open.map((review) => ({ ...reviewDocument(review), tenant_id: review.tenantId }));
      const rows = open.map((review) => [
        review.id,
        review.paymentId,
        review.reason,
        review.openedAt.toISOString(),
        review.resolution ?? "",
      ]);
      print(json === true, { data }, table(["ID", "PAYMENT", "REASON", "OPENED", "RESOLVED AS"], rows));
    });
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
    ...table(
      ["RESOLUTION", "WHAT IT DOES"],
      allowed.map(({ resolution, does }) => [resolution, does]),
    ),
  ];
}

interface Resolving extends Json {
  readonly as: string;
  readonly reason: string;
  readonly object?: string;
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
    .option(...JSON_OPTION)
    .action(async (id: string, { as, reason, object, json }: Resolving) => {
      const decision = {
        resolution: resolutionOf(as),
        reason: reasonOf(reason),
        providerObjectId: object ?? null,
      };
      const review = await withStore((store) => resolveReviewByCommand(store, id, decision));
      print(json === true, { ...reviewDocument(review), tenant_id: review.tenantId }, [
        `${review.id} resolved as ${as}; \`pawl reviews show ${review.id}\` tells what came of it`,
      ]);
    });
}

function resolutionOf(text: string): ReviewResolution {
  const known = REVIEW_RESOLUTIONS.find((resolution) => resolution === text);
  if (known === undefined) throw new CommandFailed(`--as: must be one of ${REVIEW_RESOLUTIONS.join(", ")}`);
  return known;
}

function reasonOf(text: string): string {
  if (containsCardNumber(text)) throw new CommandFailed("--reason: looks like a card number");
  if (text.trim() !== "" && Array.from(text).length <= MOST_REASON_CHARACTERS) return text;
  throw new CommandFailed(`--reason: must have 1 to ${MOST_REASON_CHARACTERS} characters`);
}
