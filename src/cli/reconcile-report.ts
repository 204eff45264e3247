import { minorUnitDigits } from "../domain/currency.js";
import { FINDING_KINDS, type Side } from "../domain/finding.js";
import { resolutionsOf } from "../operations/accept-finding.js";
import type { ReconciliationReport } from "../operations/list-findings.js";
import { table } from "./output.js";

type Finding = ReconciliationReport["findings"][number];

export function findingDocument(finding: Finding) {
  const { accepted } = finding;
  return {
    kind: finding.kind,
    object_id: finding.objectId,
    state: finding.state,
    tenant_id: finding.tenantId,
    payment_id: finding.paymentId,
    detail: finding.detail,
    ours: finding.ours,
    theirs: finding.theirs,
    first_seen_at: finding.firstSeenAt.toISOString(),
    last_seen_at: finding.lastSeenAt.toISOString(),
    closed_at: finding.closedAt?.toISOString() ?? null,
    last_run: finding.lastRun,
    accepted:
      accepted === null ? null : { reason: accepted.reason, by: accepted.by, at: accepted.at.toISOString() },
    allowed_resolutions: resolutionsOf(finding),
  };
}

/** The report as one JSON document. Amounts are integers in the minor unit of the currency beside them. */
export function reportDocument({ run, counts, findings, isComplete, unfinished }: ReconciliationReport) {
  return {
    run: {
      id: run.id,
      state: run.state,
      trigger: run.trigger,
      provider: run.provider,
      account: run.account,
      from: run.windowFrom.toISOString(),
      to: run.windowTo.toISOString(),
      steps: run.pages,
      objects: run.objects,
      error: run.error,
      started_at: run.startedAt.toISOString(),
      finished_at: run.finishedAt?.toISOString() ?? null,
    },
    counts: {
      /** False: there are more than are shown here; they are counted all the same. */
      complete: isComplete,
      open: counts.byState.get("open") ?? 0,
      repaired: counts.byState.get("repaired") ?? 0,
      gone: counts.byState.get("gone") ?? 0,
      accepted: counts.byState.get("accepted") ?? 0,
      by_kind: Object.fromEntries(
        FINDING_KINDS.flatMap((kind) => {
          const its = counts.byKind.get(kind);
          return its === undefined ? [] : [[kind, its]];
        }),
      ),
    },
    findings: findings.map(findingDocument),
    unfinished: {
      expired_leases: unfinished.expiredLeases,
      due_unknowns: unfinished.dueUnknowns,
      parked_events: unfinished.parkedEvents,
      open_reviews: unfinished.openReviews,
      past_bound: unfinished.pastBound.map((attempt) => ({
        tenant_id: attempt.tenantId,
        payment_id: attempt.paymentId,
        attempt_id: attempt.attemptId,
        kind: attempt.kind,
        state: attempt.state,
        reason: attempt.reason,
        unknown_since: attempt.unknownSince?.toISOString() ?? null,
        due_at: attempt.dueAt.toISOString(),
      })),
    },
  };
}

const DIFFERENCES_REMAIN = 3;
const NOT_COMPARED = 1;

/**
 * A comparison that has failed tells nothing of what differs, whatever older ones have left open, and comes first; what
 * alone could not be read comes last.
 */
export function exitCodeOf({ run, counts }: Pick<ReconciliationReport, "run" | "counts">): number {
  if (run.state === "failed") return NOT_COMPARED;
  if (counts.byState.has("open")) return DIFFERENCES_REMAIN;
  return run.error === null ? 0 : NOT_COMPARED;
}

const CSV_COLUMNS = [
  "kind",
  "state",
  "object_id",
  "payment_id",
  "tenant_id",
  "status_ours",
  "status_theirs",
  "amount_ours",
  "amount_theirs",
  "currency_ours",
  "currency_theirs",
  "detail",
  "first_seen_at",
  "last_seen_at",
  "closed_at",
] as const;

export const CSV_HEADER = CSV_COLUMNS.join(",");

/** A finding's row (RFC 4180), for a spreadsheet: amounts are decimals of the currency beside them. */
export function csvRow(finding: Finding): string {
  const cells = [
    finding.kind,
    finding.state,
    finding.objectId,
    finding.paymentId,
    finding.tenantId,
    text(finding.ours, "status"),
    text(finding.theirs, "status"),
    amountOf(finding.ours),
    amountOf(finding.theirs),
    text(finding.ours, "currency"),
    text(finding.theirs, "currency"),
    finding.detail,
    finding.firstSeenAt.toISOString(),
    finding.lastSeenAt.toISOString(),
    finding.closedAt?.toISOString() ?? "",
  ];
  return cells.map((cell) => csvCell(cell ?? "")).join(",");
}

const NEEDS_QUOTES = /[",\r\n]/;
/** What a spreadsheet would take for a formula; a negative amount is none. */
const LOOKS_LIKE_FORMULA = /^[=+@\t\r]|^-(?!\d+(\.\d+)?$)/;

function csvCell(value: string): string {
  const safe = LOOKS_LIKE_FORMULA.test(value) ? `'${value}` : value;
  return NEEDS_QUOTES.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** For people. */
export function reportLines(report: ReconciliationReport): string[] {
  const { run, counts, findings, unfinished } = report;
  const open = counts.byState.get("open") ?? 0;
  const all = [...counts.byState.values()].reduce((sum, count) => sum + count, 0);
  const summary = [
    `${run.id}  ${run.state}  ${run.windowFrom.toISOString()} to ${run.windowTo.toISOString()}`,
    `${run.objects} objects of ${run.provider} (${run.account}) compared: ${open} differences are open, ` +
      `${all - open} are closed`,
    ...(run.error === null ? [] : [run.error]),
    `our own side: ${unfinished.dueUnknowns} unknown outcomes are due, ${unfinished.expiredLeases} leases have ended, ` +
      `${unfinished.parkedEvents} events are parked, ${unfinished.openReviews} reviews are open`,
    ...unfinished.pastBound.map(
      (attempt) =>
        `past its bound: ${attempt.kind} of ${attempt.paymentId}, ${attempt.state} (${attempt.reason ?? "due"}) since ` +
        (attempt.unknownSince ?? attempt.dueAt).toISOString(),
    ),
  ];
  if (findings.length === 0) return [...summary, "No differences."];
  const cut = report.isComplete ? [] : [`The first ${findings.length} are shown.`];
  const rows = findings.map((finding) => [
    finding.kind,
    finding.state,
    finding.objectId,
    finding.paymentId ?? "-",
    shown(finding.ours),
    shown(finding.theirs),
    finding.detail,
  ]);
  return [
    ...summary,
    ...cut,
    "",
    ...table(["KIND", "STATE", "OBJECT", "PAYMENT", "OURS", "THEIRS", "WHAT"], rows),
  ];
}

export function shown(side: Side | null): string {
  if (side === null) return "-";
  const amount = amountOf(side);
  const parts = [text(side, "status"), amount === null ? null : `${amount} ${text(side, "currency") ?? ""}`];
  return parts.flatMap((part) => (part === null ? [] : [part.trim()])).join(" ") || "-";
}

/** Of a payment what has moved of it, where something has; of a fee the fee. */
function amountOf(side: Side | null): string | null {
  const minor = side?.["amount"] ?? side?.["fee"];
  return typeof minor === "number" ? decimal(minor, text(side, "currency") ?? "") : null;
}

/** `4200 usd` is 42.00: the ISO 4217 digits of the currency. */
function decimal(minor: number, currency: string): string {
  const digits = minorUnitDigits(currency) ?? 0;
  const whole = Math.abs(minor)
    .toString()
    .padStart(digits + 1, "0");
  const shownDigits = digits === 0 ? whole : `${whole.slice(0, -digits)}.${whole.slice(-digits)}`;
  return minor < 0 ? `-${shownDigits}` : shownDigits;
}

function text(side: Side | null, name: string): string | null {
  const value = side?.[name];
  return typeof value === "string" ? value : null;
}
