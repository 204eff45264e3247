import { describe, expect, it, test } from "vitest";
import {
  CSV_HEADER,
  csvRow,
  exitCodeOf,
  reportDocument,
  reportLines,
} from "../../../src/cli/reconcile-report.js";
import type { ReconciliationReport } from "../../../src/operations/list-findings.js";

type Finding = ReconciliationReport["findings"][number];

const AT = new Date("2026-11-29T12:00:00Z");
const FINDING: Finding = {
  kind: "amount_differs",
  objectId: "pi_1",
  tenantId: "ten_1",
  paymentId: "pay_1",
  state: "open",
  ours: { status: "succeeded", amount: 4_200, currency: "usd" },
  theirs: { status: "succeeded", amount: 5, currency: "usd" },
  detail: "the object is for another amount",
  firstRun: "rec_1",
  lastRun: "rec_2",
  firstSeenAt: AT,
  lastSeenAt: AT,
  closedAt: null,
  accepted: null,
};
/** As the database counts them. */
function countsOf(findings: readonly Finding[]): ReconciliationReport["counts"] {
  const byState = new Map<Finding["state"], number>();
  const byKind = new Map<Finding["kind"], number>();
  for (const { kind, state } of findings) {
    byState.set(state, (byState.get(state) ?? 0) + 1);
    byKind.set(kind, (byKind.get(kind) ?? 0) + 1);
  }
  return { byState, byKind };
}

const REPORT: ReconciliationReport = {
  run: {
    provider: "stripe",
    id: "rec_2",
    account: "acct_1",
    trigger: "command",
    windowFrom: AT,
    windowTo: AT,
    phase: "verify",
    state: "completed",
    cursor: null,
    pages: 9,
    objects: 250,
    repaired: 1,
    error: null,
    startedAt: AT,
    finishedAt: AT,
  },
  counts: countsOf([FINDING]),
  findings: [FINDING],
  isComplete: true,
  unfinished: { expiredLeases: 0, dueUnknowns: 2, parkedEvents: 0, openReviews: 1, pastBound: [] },
};
function having(...changes: readonly Partial<Finding>[]): ReconciliationReport {
  const findings = changes.map((change) => ({ ...FINDING, ...change }));
  return { ...REPORT, counts: countsOf(findings), findings };
}
const rowOf = (changes: Partial<Finding>) => csvRow({ ...FINDING, ...changes });

describe("a row for a spreadsheet", () => {
  it.each<[string, number, string]>([
    ["usd", 4_200, "42.00"],
    ["usd", 5, "0.05"],
    ["usd", -1_050, "-10.50"],
    ["jpy", 4_200, "4200"],
    ["bhd", 4_205, "4.205"],
  ])("shows %s %i as %s", (currency, amount, shown) => {
    expect(rowOf({ ours: { status: "succeeded", amount, currency } })).toContain(
      `,${shown},0.05,${currency},usd,`,
    );
  });

  it("shows a fee as its amount, and nothing for a side that is not there", () => {
    expect(rowOf({ ours: null, theirs: { fee: 152, currency: "usd" } })).toContain(",,,,1.52,,usd,");
  });

  it.each([
    ['said "no", twice', '"said ""no"", twice"'],
    ["two\nlines", '"two\nlines"'],
    ["=1+1", "'=1+1"],
    ["@sum", "'@sum"],
    ["-2+3", "'-2+3"],
  ])("cannot break out of its cell: %j", (detail, cell) => {
    expect(rowOf({ detail })).toContain(`,${cell},2026-`);
  });

  test("has as many cells as the header", () => {
    expect(rowOf({ detail: "plain" }).split(",")).toHaveLength(CSV_HEADER.split(",").length);
  });
});

describe("the exit code", () => {
  const failed = { ...REPORT.run, state: "failed", error: "charges: the provider did not answer" } as const;
  const inPart = { ...REPORT.run, error: "not compared: disputes" };
  const open = REPORT.counts;
  const none = countsOf([]);
  it.each([
    ["1 for one that has failed, whatever an older one has left open", { run: failed, counts: open }, 1],
    ["1 for one that has failed", { run: failed, counts: none }, 1],
    ["3 while a difference is open, also where a list could not be read", { run: inPart, counts: open }, 3],
    ["1 where a list could not be read", { run: inPart, counts: none }, 1],
    ["3 while a difference is open", { run: REPORT.run, counts: open }, 3],
    ["0 where nothing differs", { run: REPORT.run, counts: none }, 0],
  ])("is %s", (_what, report, code) => {
    expect(exitCodeOf(report)).toBe(code);
  });
});

test("the document counts by state and by kind, and leaves out kinds that were not found", () => {
  const report = having({}, { objectId: "pi_2", state: "gone" }, { kind: "missing_here", state: "repaired" });
  expect(reportDocument(report).counts).toEqual({
    complete: true,
    open: 1,
    accepted: 0,
    repaired: 1,
    gone: 1,
    by_kind: { missing_here: 1, amount_differs: 2 },
  });
});

describe("the lines for people", () => {
  it("tell what was compared, what is unfinished here, and both sides of each difference", () => {
    const lines = reportLines(REPORT);
    expect(lines.join("\n")).toContain("250 objects of stripe (acct_1) compared: 1 differences are open");
    expect(lines.join("\n")).toContain("2 unknown outcomes are due");
    expect(lines.at(-1)).toMatch(
      /^amount_differs +open +pi_1 +pay_1 +succeeded 42\.00 usd +succeeded 0\.05 usd +/,
    );
  });

  it("name attempts past their bound, what could not be compared, and that nothing differs", () => {
    const pastBound = {
      tenantId: "ten_1",
      paymentId: "pay_9",
      attemptId: "att_9",
      kind: "charge",
      state: "confirm_unknown",
      reason: "timeout",
      unknownSince: AT,
      dueAt: AT,
    } as const;
    const lines = reportLines({
      run: { ...REPORT.run, error: "not compared: disputes" },
      counts: countsOf([]),
      findings: [],
      isComplete: true,
      unfinished: { ...REPORT.unfinished, pastBound: [pastBound] },
    });
    expect(lines).toContain("not compared: disputes");
    expect(lines).toContain(
      "past its bound: charge of pay_9, confirm_unknown (timeout) since 2026-11-29T12:00:00.000Z",
    );
    expect(lines.at(-1)).toBe("No differences.");
  });
});

test("a report that shows only some of the differences says so, and counts all of them", () => {
  const byState = new Map([["open", 12_000] as const, ["repaired", 3] as const, ["gone", 4] as const]);
  const cut = { ...REPORT, counts: { byState, byKind: new Map() }, isComplete: false };
  expect(reportLines(cut).join("\n")).toContain("12000 differences are open, 7 are closed");
  expect(reportLines(cut)).toContain("The first 1 are shown.");
  expect(reportDocument(cut).counts).toMatchObject({ complete: false, open: 12_000, repaired: 3, gone: 4 });
  expect(reportLines(REPORT).join("\n")).not.toContain("are shown");
});
