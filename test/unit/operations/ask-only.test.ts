import { expect, test } from "vitest";
import type { PaymentProvider } from "../../../src/domain/provider.js";
import { askOnlyWhile } from "../../../src/operations/ask-only.js";

/** A provider whose every method says its own name, and that knows itself. */
class Echo {
  readonly name = "echo";
  readonly #sent: string[] = [];
  get sent(): readonly string[] {
    return this.#sent;
  }
  #say(name: string) {
    this.#sent.push(name);
    return Promise.resolve(name);
  }
  createCharge = () => this.#say("createCharge");
  confirmCharge = () => this.#say("confirmCharge");
  cancelCharge = () => this.#say("cancelCharge");
  captureCharge = () => this.#say("captureCharge");
  voidCharge = () => this.#say("voidCharge");
  createRefund = () => this.#say("createRefund");
  getCharge() {
    return this.#say("getCharge");
  }
  listCharges() {
    return this.#say("listCharges");
  }
}

const SENDS = [
  "createCharge",
  "confirmCharge",
  "cancelCharge",
  "captureCharge",
  "voidCharge",
  "createRefund",
];

test("no send goes out while the database recovers, and each is said to be refused before execution", async () => {
  const echo = new Echo();
  let recovering = true;
  const provider = askOnlyWhile(() => recovering, echo as unknown as PaymentProvider, 250);
  const call = (name: string) => (provider as unknown as Record<string, () => Promise<unknown>>)[name]?.();
  for (const name of SENDS) {
    expect(await call(name)).toMatchObject({
      type: "not_performed",
      reason: "recovering",
      retryAfterMs: 250,
    });
  }
  expect(echo.sent).toEqual([]);
  expect([await call("getCharge"), await call("listCharges"), provider.name]).toEqual([
    "getCharge",
    "listCharges",
    "echo",
  ]);
  recovering = false;
  for (const name of SENDS) expect(await call(name)).toBe(name);
});
