import type { AccountView } from "../domain/charge-steps.js";
import type { PaymentProvider } from "../domain/provider.js";
import type { Logger } from "../lib/log.js";
import { type Database, withDatabase } from "../store/db.js";
import { recallAccount, rememberAccount } from "../store/tenants.js";

/** Which account the configured credential belongs to, and whether the provider accepts that credential now. */
export class ProviderAccount {
  #view: AccountView = { type: "unknown", reason: "provider_account_unknown" };
  #resolving: Promise<AccountView> | null = null;
  #refusedReason: string | null = null;

  constructor(
    private readonly db: Database,
    private readonly provider: PaymentProvider,
    private readonly log: Logger,
  ) {}

  /** What is known now, without asking anybody. */
  current(): AccountView {
    return this.#view;
  }

  /** Looks in our own records first, then asks the provider; one question at a time however many call. */
  async resolve(): Promise<AccountView> {
    if (this.#view.type === "known") return this.#view;
    this.#resolving ??= this.#find().finally(() => {
      this.#resolving = null;
    });
    return this.#resolving;
  }

  async #find(): Promise<AccountView> {
    const { name, credentialDigest, livemode } = this.provider;
    const kept = await withDatabase(() => recallAccount(this.db, name, credentialDigest));
    if (kept !== null) return this.#know(kept);
    const answer = await this.provider.account();
    if (answer.type === "unanswered") {
      if (answer.reason === "unauthorized") this.noteAnswer(401);
      this.#view = { type: "unknown", reason: answer.reason };
      return this.#view;
    }
    this.noteAnswer(200);
    await withDatabase(() =>
      rememberAccount(this.db, { provider: name, credentialDigest, accountId: answer.accountId }),
    );
    this.log.info({ provider: name, account: answer.accountId, livemode }, "provider account known");
    return this.#know(answer.accountId);
  }

  #know(accountId: string): AccountView {
    this.#view = { type: "known", accountId, livemode: this.provider.livemode };
    return this.#view;
  }

  /** The provider's answer to our credential on any call: 401 and 403 degrade readiness until an answer is accepted. */
  noteAnswer(httpStatus: number | null): void {
    if (httpStatus === 401 || httpStatus === 403) {
      if (this.#refusedReason === null) this.log.error({ httpStatus }, "the provider refuses our credential");
      this.#refusedReason = httpStatus === 401 ? "unauthorized" : "forbidden";
    } else if (httpStatus !== null && httpStatus < 500 && httpStatus !== 429) {
      if (this.#refusedReason !== null) this.log.info("the provider accepts our credential again");
      this.#refusedReason = null;
    }
  }

  refusedReason(): string | null {
    return this.#refusedReason;
  }
}
