import { minorUnitDigits } from "../domain/currency.js";
import { FINDING_KINDS, type Side } from "../domain/finding.js";
import type { ReconciliationReport } from "../operations/list-findings.js";
import { table } from "./output.js";

type Finding = ReconciliationReport["findings"][number];

/** The report as one JSON document. Amounts are integers in the minor unit of the currency beside them. */
export function reportDocument({ run, findings, isComplete, unfinished }: ReconciliationReport) {
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
      /** False: there are more than are shown here. */
      complete: isComplete,
      open: count(findings, "open"),
      repaired: count(findings, "repaired"),
      gone: count(findings, "gone"),
      by_kind: Object.fromEntries(
        FINDING_KINDS.flatMap((kind) => {
          const its = findings.filter((finding) => finding.kind === kind);
          return its.length === 0 ? [] : [[kind, its.length]];
        }),
      ),
    },
    findings: findings.map((finding) => ({
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
    })),
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

function count(findings: readonly Finding[], state: Finding["state"]): number {
  return findings.filter((finding) => finding.state === state).length;
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

/** One row a finding (RFC 4180), for a spreadsheet: amounts are decimals of the currency beside them. */
export function reportCsv({ findings }: ReconciliationReport): string[] {
  const rows = findings.map((finding) => [
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
  ]);
  return [CSV_COLUMNS.join(","), ...rows.map((row) => row.map((cell) => csvCell(cell ?? "")).join(","))];
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
  const { run, findings, unfinished } = report;
  const open = findings.filter((finding) => finding.state === "open");
  const mended = findings.length - open.length;
  const atLeast = report.isComplete ? "" : "at least ";
  const summary = [
    `${run.id}  ${run.state}  ${run.windowFrom.toISOString()} to ${run.windowTo.toISOString()}`,
    `${run.objects} objects of ${run.provider} (${run.account}) compared: ${atLeast}${open.length} differences are open, ` +
      `${atLeast}${mended} are closed`,
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
  const rows = findings.map((finding) => [
    finding.kind,
    finding.state,
    finding.objectId,
    finding.paymentId ?? "-",
    shown(finding.ours),
    shown(finding.theirs),
    finding.detail,
  ]);
  return [...summary, "", ...table(["KIND", "STATE", "OBJECT", "PAYMENT", "OURS", "THEIRS", "WHAT"], rows)];
}

function shown(side: Side | null): string {
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
