import { Argument, Command } from "commander";
import type { PaymentIntentRecord } from "../sandbox/index.js";
import { answer, type ControlOptions, remoteCommand } from "./sandbox-answer.js";
import { wholeNumber } from "./sandbox-input.js";

const PAYMENT = "<payment intent>";
const AMOUNT_HELP = "in minor units (default: all of it)";

function paymentLine({ payment_intent: paymentIntent }: PaymentIntentRecord): string {
  const { id, status, amount_received: received, currency } = paymentIntent;
  return `${id}  ${status}  received ${received} ${currency}`;
}

/** The dashboard's hand on a payment: `capture`, `cancel`, `refund`; and `expire`, which ends an authorisation's time. */
export function paymentCommands(): Command[] {
  return [
    remoteCommand("capture", "capture a held payment, as from the dashboard")
      .argument(PAYMENT)
      .argument("[amount]", AMOUNT_HELP, wholeNumber)
      .action(async (id: string, amount: number | undefined, options: ControlOptions) => {
        await answer(options, (control) => control.dashboard.capture(id, amount), paymentLine);
      }),
    remoteCommand("cancel", "cancel a payment, as from the dashboard")
      .argument(PAYMENT)
      .action(async (id: string, options: ControlOptions) => {
        await answer(options, (control) => control.dashboard.cancel(id), paymentLine);
      }),
    remoteCommand("refund", "refund a payment, as from the dashboard: without Pawl's metadata")
      .argument(PAYMENT)
      .argument("[amount]", AMOUNT_HELP, wholeNumber)
      .action(async (id: string, amount: number | undefined, options: ControlOptions) => {
        await answer(options, (control) => control.dashboard.refund(id, amount), refundLine);
      }),
    remoteCommand("expire", "let an authorisation lapse now")
      .argument(PAYMENT)
      .action(async (id: string, options: ControlOptions) => {
        await answer(options, (control) => control.bank.expireAuthorization(id), paymentLine);
      }),
  ];
}

function refundLine(refund: { id: string; status: string | null; amount: number; currency: string }): string {
  return `${refund.id}  ${refund.status ?? "-"}  ${refund.amount} ${refund.currency}`;
}

type RefundOutcome = "succeed" | "fail" | "require_action";

export function refundsCommand(): Command {
  const refunds = new Command("refunds").description("what becomes of refunds");
  const outcome = new Argument("<outcome>").choices(["succeed", "fail", "require_action"]);
  refunds.addCommand(
    remoteCommand("settle", "decide a pending refund")
      .argument("<refund>")
      .addArgument(outcome)
      .action(async (id: string, decided: RefundOutcome, options: ControlOptions) => {
        await answer(options, (control) => control.bank.settleRefund(id, decided), refundLine);
      }),
  );
  refunds.addCommand(
    remoteCommand("fail", "let a refund fail, one that has succeeded too")
      .argument("<refund>")
      .option("--reason <failure reason>", "as Stripe names it (default: expired_or_canceled_card)")
      .action(async (id: string, options: ControlOptions & { readonly reason?: string }) => {
        await answer(options, (control) => control.bank.failRefund(id, options.reason), refundLine);
      }),
  );
  refunds.addCommand(
    remoteCommand("cancel", "call a refund off, as from the dashboard")
      .argument("<refund>")
      .action(async (id: string, options: ControlOptions) => {
        await answer(options, (control) => control.dashboard.cancelRefund(id), refundLine);
      }),
  );
  return refunds;
}

function disputeLine(dispute: { id: string; status: string; amount: number; currency: string }): string {
  return `${dispute.id}  ${dispute.status}  ${dispute.amount} ${dispute.currency}`;
}

interface OpenOptions extends ControlOptions {
  readonly amount?: number;
  readonly reason?: string;
  readonly inquiry?: boolean;
  readonly withdraw: boolean;
}

function openDisputeCommand(): Command {
  return remoteCommand("open", "the customer's bank disputes a payment")
    .argument(PAYMENT)
    .option("--amount <amount>", "in minor units (default: what is captured and not refunded)", wholeNumber)
    .option("--reason <reason>", "as Stripe names it (default: fraudulent)")
    .option("--inquiry", "take no money, and leave it refundable")
    .option("--no-withdraw", "leave the funds for now")
    .action(async (id: string, options: OpenOptions) => {
      const input = {
        ...(options.amount === undefined ? {} : { amount: options.amount }),
        ...(options.reason === undefined ? {} : { reason: options.reason }),
        ...(options.inquiry === true ? { inquiry: true } : {}),
        ...(options.withdraw ? {} : { withdraw: false }),
      };
      await answer(options, (control) => control.bank.openDispute(id, input), disputeLine);
    });
}

export function disputesCommand(): Command {
  const disputes = new Command("disputes").description("disputes of payments");
  disputes.addCommand(openDisputeCommand());
  disputes.addCommand(
    remoteCommand("contest", "hand in evidence, as from the dashboard")
      .argument("<dispute>")
      .action(async (id: string, options: ControlOptions) => {
        await answer(options, (control) => control.dashboard.contestDispute(id), disputeLine);
      }),
  );
  disputes.addCommand(
    remoteCommand("withdraw", "take the disputed money out of the balance")
      .argument("<dispute>")
      .action(async (id: string, options: ControlOptions) => {
        await answer(options, (control) => control.bank.withdrawFunds(id), disputeLine);
      }),
  );
  disputes.addCommand(
    remoteCommand("reinstate", "give the disputed money back")
      .argument("<dispute>")
      .action(async (id: string, options: ControlOptions) => {
        await answer(options, (control) => control.bank.reinstateFunds(id), disputeLine);
      }),
  );
  disputes.addCommand(
    remoteCommand("close", "decide a dispute")
      .argument("<dispute>")
      .addArgument(new Argument("<outcome>").choices(["won", "lost"]))
      .action(async (id: string, outcome: "won" | "lost", options: ControlOptions) => {
        await answer(options, (control) => control.bank.closeDispute(id, outcome), disputeLine);
      }),
  );
  return disputes;
}

interface PayoutOptions extends ControlOptions {
  readonly account?: string;
  readonly currency?: string;
}

export function payoutCommand(): Command {
  return remoteCommand("payout", "pay out everything available")
    .option("--account <account>", "only of this account")
    .option("--currency <currency>", "only in this currency")
    .action(async (options: PayoutOptions) => {
      const { account, currency } = options;
      const filter = {
        ...(account === undefined ? {} : { account }),
        ...(currency === undefined ? {} : { currency }),
      };
      await answer(
        options,
        (control) => control.bank.payOut(filter),
        (payouts) =>
          payouts
            .map((payout) => `${payout.id}  ${payout.status}  ${payout.amount} ${payout.currency}`)
            .join("\n"),
      );
    });
}
