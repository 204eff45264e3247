import { BLOWS } from "./blows.js";
import type { ChaosReport } from "./run.js";

const MOST_FAULTS_SHOWN = 40;

/** For people: what there was, and what went wrong, the first fault first. */
export function describeReport(report: ChaosReport): string {
  const { faults, longestRecovery: longest } = report;
  const kinds = Object.keys(report.blows).length;
  const blows = Object.values(report.blows).reduce((sum, count) => sum + count, 0);
  const lines = [
    `seed ${report.seed}, ${report.minutes.toFixed(1)} minutes`,
    `payments: ${listed(report.payments)}`,
    `effects: ${listed(report.effects)}; events: ${report.events}`,
    `answers: ${report.answers}; passing refusals: ${listed(report.refusals)}; without an answer: ${report.broken}`,
    `blows: ${blows}, of ${kinds} of ${BLOWS.length} kinds: ${listed(report.blows)}`,
    `longest way back: ${longest.ms} ms after ${longest.after ?? "nothing"}`,
    `longest payment: ${report.longestPaymentMs} ms from its accept to its outcome; at rest ${report.settledMs} ms after the end`,
    ...report.reviews.map((what) => `open review: ${what}`),
    `errors logged: ${listed(report.errorsLogged)}`,
  ];
  if (faults.length === 0) return [...lines, "nothing lost, nothing doubled"].join("\n");
  const shown = faults.slice(0, MOST_FAULTS_SHOWN).map((fault) => `FAULT: ${fault}`);
  const more = faults.length - shown.length;
  return [
    ...lines,
    ...shown,
    ...(more > 0 ? [`… and ${more} more`] : []),
    `${faults.length} faults; the logs are in ${report.logFolder}`,
  ].join("\n");
}

function listed(counts: Readonly<Record<string, number>>): string {
  const all = Object.entries(counts).map(([name, count]) => `${name} ${count}`);
  return all.length === 0 ? "none" : all.join(", ");
}
