import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type Stripe from "stripe";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startSandbox } from "../../src/sandbox/index.js";
import { Journal, type JournalOperation } from "../../src/sandbox/journal.js";
import { SandboxProcess } from "./sandbox-process.js";
import { bodyOf, CREATE, created, type ErrorBody, paid, send, stripeFor, TEST_KEY } from "./support.js";

const PATH = "/v1/payment_intents";

let stateDir: string;
beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), "pawl-sandbox-"));
});
afterEach(() => rmSync(stateDir, { recursive: true, force: true }));

describe("a sandbox with a state directory", () => {
  it("forgets nothing that it answered when its process is killed", async () => {
    const first = await SandboxProcess.start("--state-dir", stateDir);
    const create = { path: PATH, body: `${CREATE}1`, key: "create" };
    const made = await first.send(create);
    const { id } = bodyOf(made);
    const confirm = { path: `${PATH}/${id}/confirm`, key: "confirm" };
    const paid = await first.send(confirm);
    expect(bodyOf(paid).status).toBe("succeeded");
    await first.control.addFault({
      match: { call: "payment_intents.cancel" },
      fault: { type: "stored_error" },
    });
    const stored = await first.send({ path: `${PATH}/${id}/cancel`, key: "cancel" });
    expect(stored.status).toBe(500);
    await first.end("SIGKILL");

    const second = await SandboxProcess.start("--state-dir", stateDir);
    try {
      for (const [request, before] of [
        [create, made],
        [confirm, paid],
        [{ path: `${PATH}/${id}/cancel`, key: "cancel" }, stored],
      ] as const) {
        const replay = await second.send(request);
        expect(replay.headers["idempotent-replayed"]).toBe("true");
        expect(replay.text).toBe(before.text);
      }
      const changed = await second.send({ ...create, body: `${CREATE}2` });
      expect(bodyOf<ErrorBody>(changed).error.type).toBe("idempotency_error");
      expect(await second.control.counts()).toMatchObject({ payment_intents: 1, successful_charges: 1 });
      const events = await second.control.listEvents({ object_id: id });
      expect(events.map((each) => each.type)).toEqual(["payment_intent.created", "payment_intent.succeeded"]);
      expect((events[0]?.data.object as { status?: string }).status).toBe("requires_confirmation");
    } finally {
      await second.end("SIGTERM");
    }
  });

  it("keeps the lists in order, the clock where it was set, and the accounts of keys, over two restarts", async () => {
    let sandbox = await startSandbox({ stateDir });
    await sandbox.control.assignApiKey("sk_test_rotated", "acct_kept");
    await sandbox.control.revokeApiKey("sk_test_lost");
    const ids = [(await created(sandbox)).id, (await created(sandbox)).id];
    await sandbox.control.advanceClock(3_600_000);
    ids.push((await created(sandbox)).id);
    const { offset_ms: offset } = await sandbox.control.clock();
    const payment = await paid(stripeFor(sandbox, "sk_test_payer"));
    const { id: refund } = await stripeFor(sandbox, "sk_test_payer").refunds.create({
      payment_intent: payment.id,
      amount: 100,
    });
    for (let restart = 0; restart < 2; restart += 1) {
      await sandbox.stop();
      sandbox = await startSandbox({ stateDir });
    }
    expect((await sandbox.control.clock()).offset_ms).toBe(offset);
    expect((await stripeFor(sandbox).paymentIntents.list()).data.map((each) => each.id)).toEqual(
      [...ids].reverse(),
    );
    const payer = stripeFor(sandbox, "sk_test_payer");
    expect((await payer.refunds.list({ payment_intent: payment.id })).data.map((each) => each.id)).toEqual([
      refund,
    ]);
    expect((await payer.balanceTransactions.list()).data.map((each) => each.net)).toEqual([-100, 4048]);
    expect((await stripeFor(sandbox, "sk_test_rotated").accounts.retrieveCurrent()).id).toBe("acct_kept");
    expect((await send(sandbox, { method: "GET", path: "/v1/account", apiKey: "sk_test_lost" })).status).toBe(
      401,
    );
    expect(bodyOf(await send(sandbox, { path: `${PATH}/${ids[0]!}/confirm` })).status).toBe("succeeded");
    await sandbox.stop();
  });

  it("keeps what follows a charge, and what is still to come, when its process is killed", async () => {
    const first = await SandboxProcess.start("--state-dir", stateDir);
    const stripe = stripeFor(first);
    const held = await paid(stripe, { capture_method: "manual" });
    const slow = await paid(stripe, { payment_method: "pm_card_pendingRefund" });
    const disputed = await paid(stripe, { payment_method: "pm_card_createDispute" });
    const create = { path: "/v1/refunds", body: `payment_intent=${slow.id}&amount=1000`, key: "refund" };
    const refunded = await first.send(create);
    const refund = bodyOf<Stripe.Refund>(refunded);
    await first.control.advanceClock(1_000);
    const [payout] = await first.control.bank.payOut();
    const [dispute] = (await stripe.disputes.list()).data;
    await first.end("SIGKILL");

    const second = await SandboxProcess.start("--state-dir", stateDir);
    try {
      expect((await second.send(create)).text).toBe(refunded.text);
      const again = stripeFor(second);
      expect(await again.disputes.retrieve(dispute!.id)).toEqual(expect.objectContaining({ ...dispute! }));
      expect(payout).toBeUndefined();
      const transactions = await again.balanceTransactions.list();
      expect(transactions.data.map((each) => each.type).sort()).toEqual([
        "adjustment",
        "charge",
        "charge",
        "refund",
      ]);
      expect((await again.refunds.retrieve(refund.id)).status).toBe("pending");
      await second.control.advanceClock(7 * 86_400_000);
      expect((await again.refunds.retrieve(refund.id)).status).toBe("succeeded");
      expect((await again.paymentIntents.retrieve(held.id)).cancellation_reason).toBe("automatic");
      expect((await again.disputes.list({ payment_intent: disputed.id })).data).toHaveLength(1);
      const paidOut = await second.control.bank.payOut();
      expect(paidOut.map((each) => each.amount)).toEqual([2 * 4048 - 1000 - 4200 - 1500]);
    } finally {
      await second.end("SIGTERM");
    }
  });

  it("does not bring back what was pruned, removed or reset", async () => {
    const first = await startSandbox({ stateDir });
    const made = bodyOf(await send(first, { path: PATH, body: `${CREATE}1`, key: "k" }));
    const removed = await created(first);
    await first.control.pruneIdempotencyKeys();
    await first.control.removePaymentIntent(removed.id);
    await first.stop();
    const second = await startSandbox({ stateDir });
    expect(bodyOf(await send(second, { path: PATH, body: `${CREATE}1`, key: "k" })).id).not.toBe(made.id);
    expect((await send(second, { method: "GET", path: `${PATH}/${removed.id}` })).status).toBe(404);
    await second.control.reset();
    await second.stop();
    const third = await startSandbox({ stateDir });
    expect(await third.control.counts()).toMatchObject({ payment_intents: 0 });
    await third.stop();
  });

  it("leaves out a last line that a kill cut short, and refuses one damaged in the middle", async () => {
    const first = await startSandbox({ stateDir });
    const made = await created(first);
    await first.stop();
    const journal = join(stateDir, "journal.jsonl");
    appendFileSync(journal, '[["payment_intent","acct_x/test",{"id":"pi_cut');
    const second = await startSandbox({ stateDir });
    expect((await send(second, { method: "GET", path: `${PATH}/${made.id}` })).status).toBe(200);
    await second.stop();
    writeFileSync(journal, `{"broken"\n${readFileSync(journal, "utf8")}`);
    await expect(startSandbox({ stateDir })).rejects.toThrow("line 1 is unreadable");
  });

  it("reads a journal of any length, whatever stands at the edge of what is read at once", () => {
    const journal = new Journal(stateDir);
    const operations: JournalOperation[][] = [
      [["setting", "xy", "€".repeat(1_000_000)]],
      [["setting", "z", 1]],
      [["setting", "z", "é".repeat(1_500_000)]],
    ];
    for (const each of operations) journal.append(each);
    expect([...journal.read()]).toEqual(operations.flat());
    journal.close();
  });

  it("keeps the journal to its owner and free of API keys", async () => {
    const sandbox = await startSandbox({ stateDir });
    await created(sandbox);
    await sandbox.control.assignApiKey(TEST_KEY, "acct_kept");
    await sandbox.stop();
    const journal = join(stateDir, "journal.jsonl");
    expect(statSync(journal).mode & 0o077).toBe(0);
    expect(readFileSync(journal, "utf8")).not.toContain(TEST_KEY);
  });

  it("frees a key that was in use when the process died: nothing was saved under it", async () => {
    const first = await startSandbox({ stateDir });
    await first.control.addFault({
      match: { idempotency_key: "k" },
      fault: { type: "reset", effect: "later" },
    });
    expect((await send(first, { path: PATH, body: `${CREATE}1`, key: "k" })).broken).toBe("ECONNRESET");
    await first.stop();
    const second = await startSandbox({ stateDir });
    const answer = await send(second, { path: PATH, body: `${CREATE}1`, key: "k" });
    expect(answer.status).toBe(200);
    expect(answer.headers["idempotent-replayed"]).toBeUndefined();
    await second.stop();
  });
});
