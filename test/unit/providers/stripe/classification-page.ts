import type {
  Condition,
  LookupRow,
  LookupVerdict,
  SendRow,
  SendVerdict,
} from "../../../../src/providers/stripe/classify-error.js";

/** docs/stripe-classification.md, made from the tables of src/providers/stripe/classify-error.ts. */
export function classificationPage(sends: readonly SendRow[], lookups: readonly LookupRow[]): string {
  return `# How Stripe's answers are classified

Made from the tables in \`src/providers/stripe/classify-error.ts\`; a test fails when this page differs from them, and
\`npx vitest run test/unit/providers/stripe/classify-error.test.ts -u\` writes it anew.

## Sends

The first row that fits decides. Both *fence* and *cancel* cancel the object: the one to close what is not paid, the other
because the merchant asks. A *re-send* is a send while an earlier one of the same call is unresolved; *replayed*
means that the answer carries \`Idempotent-Replayed: true\`. An empty cell fits everything.

| # | call | send | replayed | status | error | outcome | because |
| --- | --- | --- | --- | --- | --- | --- | --- |
${sends.map((row, index) => `| ${[index + 1, ...cells(row.when, true), sendVerdict(row.then), row.because].join(" | ")} |`).join("\n")}

- **object**: what the PaymentIntent or the Refund itself says; one that cannot be read, or is another one, is unknown
  (unreadable). A replayed one describes the past and is fetched before it is believed.
- **not performed**: this send had no effect and never will. **rejected**, **declined**: final.
- **unknown**: the object is asked about before anything is sent again, and never given up for failed. With *key spent*
  the call is not sent again under its key.

## Questions

| # | status | error | answer |
| --- | --- | --- | --- |
${lookups.map((row, index) => `| ${[index + 1, ...cells(row.when, false), lookupVerdict(row.then)].join(" | ")} |`).join("\n")}

A look-up by our own reference is *absent* only after the last page of the list. A list is *missing* where what it is of
is missing; a 404 for a list that is of nothing, or for a later page, is *unanswered*.
`;
}

function cells(when: Condition, ofSend: boolean): string[] {
  const send = when.resend === undefined ? "" : when.resend ? "re-send" : "first";
  const replayed = when.replayed === undefined ? "" : when.replayed ? "yes" : "no";
  const error = [
    when.type === undefined ? "" : `type \`${when.type}\``,
    (when.codes ?? []).map((code) => `\`${code}\``).join(", "),
    when.param === undefined ? "" : `about \`${when.param}\``,
  ];
  const told = [status(when), error.filter((part) => part !== "").join(", ")];
  return ofSend ? [(when.calls ?? []).join(", "), send, replayed, ...told] : told;
}

const FAULT_NAMES = {
  refused: "no connection",
  timeout: "none in time",
  lost: "connection lost",
  unreadable: "not Stripe's form",
} as const;

function status(when: Condition): string {
  if (when.fault !== undefined) return FAULT_NAMES[when.fault];
  return typeof when.status === "string" ? when.status : (when.status ?? []).join(", ");
}

function sendVerdict(verdict: SendVerdict): string {
  switch (verdict.type) {
    case "object":
    case "declined":
    case "rejected":
      return `**${verdict.type}**`;
    case "not_performed":
      return `**not performed** (${verdict.reason})`;
    case "unknown":
      return `**unknown** (${verdict.reason})${verdict.keySpent === true ? ", key spent" : ""}`;
  }
}

function lookupVerdict(verdict: LookupVerdict): string {
  return verdict.type === "unanswered" ? `**unanswered** (${verdict.reason})` : `**${verdict.type}**`;
}
