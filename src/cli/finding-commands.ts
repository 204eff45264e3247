import { Command, Option } from "commander";
import { FINDING_KINDS, type FindingKind } from "../domain/finding.js";
import { PROVIDER_NAMES, type ProviderName } from "../domain/provider.js";
import { acceptFinding, listDifferences, resolutionsOf } from "../operations/accept-finding.js";
import { withStore } from "./environment.js";
import { print, table, WrongUsage } from "./output.js";
import { findingDocument, shown } from "./reconcile-report.js";
import { reasonOf } from "./review-commands.js";

interface Options {
  readonly provider: ProviderName;
  readonly json?: boolean;
}

const JSON_OPTION = ["--json", "print one JSON document"] as const;
const MOST_SHOWN = 1_000;
const COMMAND_LINE = "command-line";

export function findingsCommand(): Command {
  return new Command("findings")
    .description("what `pawl reconcile` has found to differ from the provider")
    .addCommand(listCommand())
    .addCommand(acceptCommand());
}

function providerOption(): Option {
  return new Option("--provider <name>", "whose objects differ").choices(PROVIDER_NAMES).default("stripe");
}

function listCommand(): Command {
  return new Command("list")
    .description(`open differences, at most ${MOST_SHOWN}, those first that were looked at longest ago`)
    .addOption(providerOption())
    .option(...JSON_OPTION)
    .action(async ({ provider, json }: Options) => {
      const open = await withStore((store) => listDifferences(store, provider, MOST_SHOWN));
      const rows = open.map((finding) => [
        finding.kind,
        finding.objectId,
        finding.paymentId ?? finding.tenantId ?? "-",
        shown(finding.ours),
        shown(finding.theirs),
        resolutionsOf(finding).join(", ") || "-",
        finding.detail,
      ]);
      const head = ["KIND", "OBJECT", "OF", "OURS", "THEIRS", "MAY BE DECIDED", "WHAT"];
      print(json === true, { data: open.map(findingDocument) }, table(head, rows));
    });
}

function acceptCommand(): Command {
  return new Command("accept")
    .description("let a difference stand as it is: it is told again only if it comes to differ otherwise")
    .argument("<kind>", "e.g. tenant_missing_here")
    .argument("<object>", "the provider's object")
    .requiredOption("--reason <text>", "why, for whoever looks later")
    .addOption(providerOption())
    .option(...JSON_OPTION)
    .action(async (kind: string, objectId: string, options: Options & { readonly reason: string }) => {
      const name = { provider: options.provider, kind: kindOf(kind), objectId };
      const decision = { reason: reasonOf(options.reason), by: COMMAND_LINE };
      const accepted = await withStore((store) => acceptFinding(store, name, decision));
      print(options.json === true, findingDocument(accepted), [
        `${accepted.kind} of ${accepted.objectId} is accepted: ${accepted.detail}`,
      ]);
    });
}

function kindOf(text: string): FindingKind {
  const known = FINDING_KINDS.find((kind) => kind === text);
  if (known === undefined) throw new WrongUsage(`<kind>: must be one of ${FINDING_KINDS.join(", ")}`);
  return known;
}
