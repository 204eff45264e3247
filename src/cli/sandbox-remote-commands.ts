import { Command, InvalidArgumentError } from "commander";
import {
  CALL_NAMES,
  type FaultRuleInput,
  type HeldSelector,
  type LoggedRequest,
  type RequestFilter,
} from "../sandbox/index.js";
import { answer, type ControlOptions, remoteCommand } from "./sandbox-answer.js";
import { ruleOf } from "./sandbox-input.js";

export function faultsCommand(): Command {
  const faults = new Command("faults").description("fault rules of a running sandbox");
  faults.addCommand(
    remoteCommand("add", "add a rule; see docs/sandbox.md for its members")
      .argument("<json>", "the rule", ruleOf)
      .action(async (rule: FaultRuleInput, options: ControlOptions) => {
        await answer(
          options,
          (control) => control.addFault(rule),
          (added) => `added ${added.id}`,
        );
      }),
  );
  faults.addCommand(
    remoteCommand("list", "list the rules and how often each was applied").action(
      async (options: ControlOptions) => {
        await answer(
          options,
          (control) => control.listFaults(),
          (rules) =>
            rules
              .map(
                (rule) =>
                  `${rule.id}  ${rule.fault.type}/${rule.fault.effect}  applied ${rule.applied} of ${rule.times ?? "any"}`,
              )
              .join("\n"),
        );
      },
    ),
  );
  faults.addCommand(
    remoteCommand("clear", "remove all rules").action(async (options: ControlOptions) => {
      await answer(
        options,
        (control) => control.clearFaults().then(() => ({ cleared: true })),
        () => "cleared",
      );
    }),
  );
  return faults;
}

export function clockCommand(): Command {
  const clock = new Command("clock").description("the clock of a running sandbox");
  clock.addCommand(
    remoteCommand("show", "show its time").action(async (options: ControlOptions) => {
      await answer(
        options,
        (control) => control.clock(),
        (state) => state.now,
      );
    }),
  );
  clock.addCommand(
    remoteCommand("advance", "move it forward: idempotency keys are forgotten at 24 h")
      .argument("<duration>", "such as 90s, 15m, 25h, 2d, 1500ms", durationMs)
      .action(async (byMs: number, options: ControlOptions) => {
        await answer(
          options,
          (control) => control.advanceClock(byMs),
          (state) => state.now,
        );
      }),
  );
  clock.addCommand(
    remoteCommand("set", "set it")
      .argument("<time>", "RFC 3339", timeOf)
      .action(async (now: Date, options: ControlOptions) => {
        await answer(
          options,
          (control) => control.setClock(now),
          (state) => state.now,
        );
      }),
  );
  return clock;
}

interface LogOptions extends ControlOptions {
  readonly call?: string;
  readonly key?: string;
  readonly object?: string;
}

export function logCommand(): Command {
  return remoteCommand("log", "list the requests a running sandbox received, in order")
    .option("--call <name>", "such as payment_intents.confirm", callName)
    .option("--key <key>", "idempotency key")
    .option("--object <id>", "the object in the path, or made")
    .action(async (options: LogOptions) => {
      const filter: RequestFilter = {
        ...(options.call === undefined ? {} : { call: options.call }),
        ...(options.key === undefined ? {} : { idempotency_key: options.key }),
        ...(options.object === undefined ? {} : { object_id: options.object }),
      };
      await answer(
        options,
        (control) => control.listRequests(filter),
        (entries) => entries.map(logLine).join("\n"),
      );
    });
}

function callName(text: string): string {
  if (CALL_NAMES.some((call) => call === text)) return text;
  throw new InvalidArgumentError(`It must be one of ${CALL_NAMES.join(", ")}.`);
}

function logLine(entry: LoggedRequest): string {
  const parts = [
    String(entry.sequence),
    entry.received_at,
    entry.call ?? `${entry.method} ${entry.path}`,
    entry.object_id ?? "-",
    entry.idempotency_key ?? "-",
    `sent ${entry.status ?? "nothing"}`,
    `effect ${entry.effect}`,
    ...(entry.replayed ? ["replayed"] : []),
    ...(entry.fault === null ? [] : [`fault ${entry.fault.type}/${entry.fault.effect}`]),
  ];
  return parts.join("  ");
}

interface ReleaseOptions extends ControlOptions {
  readonly id?: string;
  readonly rule?: string;
  readonly key?: string;
  readonly object?: string;
  readonly drop?: boolean;
}

export function releaseCommand(): Command {
  return remoteCommand("release", "let held requests go on: all, or those that match")
    .option("--id <held id>")
    .option("--rule <rule id>")
    .option("--key <key>", "idempotency key")
    .option("--object <id>", "the object in the path")
    .option("--drop", "lose them instead")
    .action(async (options: ReleaseOptions) => {
      const selector: HeldSelector = {
        ...(options.id === undefined ? {} : { id: options.id }),
        ...(options.rule === undefined ? {} : { rule_id: options.rule }),
        ...(options.key === undefined ? {} : { idempotency_key: options.key }),
        ...(options.object === undefined ? {} : { object_id: options.object }),
      };
      await answer(
        options,
        (control) => control.release({ ...selector, outcome: options.drop === true ? "drop" : "proceed" }),
        (released) => `released ${released.length}`,
      );
    });
}

const UNITS_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

function durationMs(text: string): number {
  const [, count, unit] = /^(\d+)(ms|s|m|h|d)$/.exec(text) ?? [];
  const unitMs = unit === undefined ? undefined : UNITS_MS[unit];
  if (unitMs === undefined)
    throw new InvalidArgumentError("It must be a number and a unit: ms, s, m, h or d.");
  return Number(count) * unitMs;
}

function timeOf(text: string): Date {
  const time = new Date(text);
  if (Number.isNaN(time.getTime())) throw new InvalidArgumentError("It must be an RFC 3339 time.");
  return time;
}
