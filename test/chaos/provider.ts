import { join } from "node:path";
import { type FaultRuleInput, type LoggedRequest, SandboxControl } from "../../src/sandbox/index.js";
import { INBOX_PATH, STRIPE_SECRET } from "../support/stripe-sender.js";
import { ChaosProcess, type Morgue } from "./process.js";

const EFFECTS = ["payment_intents.capture", "payment_intents.cancel"];
const CHARGES = ["payment_intents.create", "payment_intents.confirm", ...EFFECTS];
const SENDS = [...CHARGES, "refunds.create"];
const QUESTIONS = [
  "payment_intents.retrieve",
  "payment_intents.list",
  "refunds.retrieve",
  "refunds.list",
  "balance_transactions.list",
];

const often = (
  call: readonly string[],
  probability: number,
  fault: FaultRuleInput["fault"],
  latencyMs = 0,
): FaultRuleInput => ({ match: { call }, times: null, probability, latency_ms: latencyMs, fault });

/** About a quarter of all calls meets one of them. */
const FAULTS: readonly FaultRuleInput[] = [
  often(SENDS, 0.03, { type: "reset", effect: "applied" }),
  often(SENDS, 0.03, { type: "reset", effect: "none" }),
  // The caller hears nothing more, and the effect comes when others have already asked, or sent again.
  often(SENDS, 0.02, { type: "reset", effect: "later", arrival: "in_network", effect_after_ms: 300 }),
  often(SENDS, 0.02, { type: "reset", effect: "later", arrival: "executing", effect_after_ms: 300 }),
  often(SENDS, 0.02, { type: "hang", effect: "later", arrival: "in_network", effect_after_ms: 1_500 }),
  often(CHARGES, 0.02, { type: "stored_error", status: 500 }),
  // A refund has one key: after this nobody but a person can say what is right.
  often(["refunds.create"], 0.003, { type: "stored_error", status: 500 }),
  often(SENDS, 0.02, { type: "error", status: 500, effect: "applied" }),
  often(SENDS, 0.02, { type: "error", status: 409 }),
  often(SENDS, 0.02, { type: "error", status: 429 }),
  often(SENDS, 0.01, { type: "error", status: 429, code: "lock_timeout" }),
  often([...SENDS, ...QUESTIONS], 0.02, { type: "garbage" }),
  often(QUESTIONS, 0.04, { type: "error", status: 503 }),
  often([...SENDS, ...QUESTIONS], 0.05, { type: "slow" }, 200),
];

/** Refunds that banks decide about do so while the run lasts. */
const REFUND_SETTLES_AFTER_MS = 2_000;
const RELEASE_EVERY_MS = 1_000;
/** What the sandbox's request log keeps at most, with room for what comes while it is read. */
const LOG_LIMIT = 9_000;

interface Addresses {
  readonly url: string;
  readonly control_url: string;
}

/** The sandbox as a process of its own. Objects and keys are on disk; what a kill takes from it is given back here. */
export class ChaosProvider {
  /** Of each of its lives the request log, which does not outlive it. */
  readonly logs: (readonly LoggedRequest[])[] = [];
  #process: ChaosProcess<Addresses> | null = null;
  #reordered: string | null = null;
  #isFaulty = true;
  readonly #postman: NodeJS.Timeout;

  private constructor(
    private readonly morgue: Morgue,
    private readonly inboxes: () => readonly string[],
  ) {
    // Held events go out all at once and backwards: late, out of order, and for the second time.
    this.#postman = setInterval(() => void this.#releaseEvents(), RELEASE_EVERY_MS);
  }

  /** `inboxes`: where the two APIs are, once they are. */
  static async start(morgue: Morgue, inboxes: () => readonly string[]): Promise<ChaosProvider> {
    const provider = new ChaosProvider(morgue, inboxes);
    provider.#process = await provider.#launch("0", "0");
    return provider;
  }

  get url(): string {
    return this.#running.addresses.url;
  }

  get control(): SandboxControl {
    return new SandboxControl(this.#running.addresses.control_url);
  }

  get process(): ChaosProcess<Addresses> {
    return this.#running;
  }

  /** Faults and webhooks, as long as it lives. Called again after each start. */
  async disturb(): Promise<void> {
    const { control } = this;
    await control.changeSettings({ refund_settles_after_ms: REFUND_SETTLES_AFTER_MS });
    // What was pending when it died would now take as long as without that setting.
    const pending = (await control.listRefunds()).filter(({ status }) => status === "pending");
    for (const { id } of pending) await control.bank.settleRefund(id, "succeed");
    if (this.#isFaulty) for (const fault of FAULTS) await control.addFault(fault);
    const [first = "", second = ""] = this.inboxes();
    await control.addWebhookEndpoint({ url: first + INBOX_PATH, secrets: [STRIPE_SECRET] });
    const held = { url: second + INBOX_PATH, secrets: [STRIPE_SECRET], mode: "held" } as const;
    this.#reordered = (await control.addWebhookEndpoint(held)).id;
  }

  /** `kill -9`, and the same again at the same addresses; `meanwhile` it is away. */
  async crash(meanwhile: () => Promise<unknown> = () => Promise.resolve()): Promise<void> {
    const { url, control_url: controlUrl } = this.#running.addresses;
    await this.#keepLog();
    await this.#running.crash();
    await meanwhile();
    this.#process = await this.#launch(new URL(url).port, new URL(controlUrl).port);
    await this.disturb();
  }

  /** No faults any more, nothing under way, no event that waits. */
  async calm(): Promise<void> {
    this.#isFaulty = false;
    const { control } = this;
    await control.openListener();
    await control.clearFaults();
    await control.release();
    await this.#releaseEvents();
    await control.webhooksIdle();
  }

  /** Its part is over: what it would still send again is not sent. */
  async silence(): Promise<void> {
    clearInterval(this.#postman);
    await this.#releaseEvents();
    for (const { id } of await this.control.listWebhookEndpoints())
      await this.control.removeWebhookEndpoint(id);
    await this.control.webhooksIdle();
    await this.#keepLog();
  }

  async stop(): Promise<void> {
    clearInterval(this.#postman);
    await this.#process?.crash();
  }

  get #running(): ChaosProcess<Addresses> {
    if (this.#process === null) throw new Error("the sandbox has not started");
    return this.#process;
  }

  #launch(port: string, controlPort: string): Promise<ChaosProcess<Addresses>> {
    const args = ["sandbox", "--port", port, "--control-port", controlPort];
    const stateDir = join(this.morgue.folder, "sandbox");
    return ChaosProcess.start("sandbox", [...args, "--state-dir", stateDir], {}, this.morgue);
  }

  async #keepLog(): Promise<void> {
    const log = await this.control.listRequests();
    this.logs.push(log.slice(-LOG_LIMIT));
  }

  async #releaseEvents(): Promise<void> {
    const endpoint = this.#reordered;
    // It may be dead, frozen, or not know this endpoint any more.
    if (endpoint !== null) await this.control.releaseEvents(endpoint, "reverse").catch(() => undefined);
  }
}
