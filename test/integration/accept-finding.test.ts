import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { acceptFinding, listDifferences } from "../../src/operations/accept-finding.js";
import type { Deps } from "../../src/operations/deps.js";
import { purgeReconciliation } from "../../src/store/reconciliation.js";
import { type Harness, startHarness, until } from "../support/harness.js";
import { withProvider } from "../support/provider-events.js";
import {
  COMPARING,
  compareNow,
  emptyRows,
  findingWords,
  type PaidObject,
  payOne,
  strayOf,
  untilSettled,
} from "../support/reconciliation.js";
import { resolve, untilClosed, untilReview } from "../support/reviews.js";

let harness: Harness;
beforeAll(async () => {
  harness = await startHarness({ env: COMPARING, workers: ["attempts"] });
});
beforeEach(() => emptyRows(harness));
afterAll(() => harness.stop());

const BY = { reason: "known to finance", by: "command-line" };

/** A charge that was made twice: its second object stays a difference for ever. */
async function secondObject(): Promise<PaidObject & { readonly second: string }> {
  const paid = await payOne(harness);
  const second = await strayOf(harness, paid, true);
  await untilSettled(harness);
  await compareNow(harness.deps);
  return { ...paid, second };
}

/** The provider without one of its objects. */
function without({ objectId }: PaidObject): Deps {
  const { provider } = harness.deps;
  return withProvider(harness.deps, {
    getCharge: async (id) => {
      const answer = await provider.getCharge(id);
      return id === objectId ? { type: "missing", evidence: answer.evidence } : answer;
    },
    listCharges: async (page) => {
      const answer = await provider.listCharges(page);
      return answer.type === "page"
        ? { ...answer, items: answer.items.filter(({ id }) => id !== objectId) }
        : answer;
    },
  });
}

async function reviewCount(): Promise<number> {
  return (await harness.deps.db.sql`select 1 from reviews`).length;
}

describe("a difference that a person accepts", () => {
  test("is told no more, by whomever it is seen, and says who has accepted it and why", async () => {
    const { paymentId, second } = await secondObject();
    const name = { provider: "stripe", kind: "second_object", objectId: second } as const;
    const accepted = await acceptFinding(harness.deps, name, BY);
    expect(accepted).toMatchObject({ state: "accepted", accepted: BY });
    for (let runs = 0; runs < 2; runs += 1) await compareNow(harness.deps);
    expect(await findingWords(harness)).toEqual([`second_object ${second} accepted`]);
    expect(await listDifferences(harness.deps, "stripe", 10)).toEqual([]);
    expect(await reviewCount()).toBe(1);
    const told = await harness.deps.db.sql`
      select reason, outcome from timeline where payment_id = ${paymentId} and kind = 'request' and outcome like 'by %'`;
    expect(told).toEqual([
      { reason: `accepted second_object of ${second}: ${BY.reason}`, outcome: "by command-line" },
    ]);
  });

  test("is accepted once, of two people at once, and the other is told by whom", async () => {
    const { second } = await secondObject();
    const name = { provider: "stripe", kind: "second_object", objectId: second } as const;
    const answers = await Promise.allSettled([1, 2].map(() => acceptFinding(harness.deps, name, BY)));
    expect(answers.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
    await expect(acceptFinding(harness.deps, name, BY)).rejects.toMatchObject({
      code: "review_closed",
      message: expect.stringContaining("by command-line: known to finance") as string,
    });
    expect(
      await harness.deps.db.sql`select 1 from timeline where reason like 'accepted second_object%'`,
    ).toHaveLength(1);
  });

  test("is open again as soon as it is another one", async () => {
    const { second } = await secondObject();
    await acceptFinding(harness.deps, { provider: "stripe", kind: "second_object", objectId: second }, BY);
    await harness.deps.provider.getCharge(second);
    await harness.sandbox.control.patchPaymentIntent(second, { amount_received: 1 });
    await compareNow(harness.deps);
    expect(await findingWords(harness)).toEqual([`second_object ${second} open`]);
  });

  test("is kept while comparisons still see it, however long ago it was accepted", async () => {
    const { second } = await secondObject();
    await acceptFinding(harness.deps, { provider: "stripe", kind: "second_object", objectId: second }, BY);
    const { sql } = harness.deps.db;
    await sql`update reconciliation_findings set closed_at = now() - interval '100 days'`;
    await purgeReconciliation(sql, 86_400_000, 10);
    expect(await findingWords(harness)).toEqual([`second_object ${second} accepted`]);
    await sql`update reconciliation_findings set last_seen_at = now() - interval '100 days'`;
    await purgeReconciliation(sql, 86_400_000, 10);
    expect(await findingWords(harness)).toEqual([]);
  });

  test("is none that something mends", async () => {
    const { sql } = harness.deps.db;
    await sql`insert into reconciliation_findings (provider, kind, object_id, detail, first_run, last_run)
      values ('stripe', 'missing_here', 'pi_lost', 'lost', 'rec_1', 'rec_1'),
             ('stripe', 'tenant_missing_here', 'pi_alien', 'of no tenant', 'rec_1', 'rec_1')`;
    const name = { provider: "stripe", objectId: "pi_lost" } as const;
    await expect(acceptFinding(harness.deps, { ...name, kind: "missing_here" }, BY)).rejects.toMatchObject({
      code: "resolution_not_allowed",
    });
    await expect(acceptFinding(harness.deps, { ...name, kind: "second_object" }, BY)).rejects.toMatchObject({
      code: "not_found",
    });
    const alien = { provider: "stripe", kind: "tenant_missing_here", objectId: "pi_alien" } as const;
    expect(await acceptFinding(harness.deps, alien, BY)).toMatchObject({ state: "accepted" });
  });
});

describe("an object that the provider does not have any more", () => {
  test("is accepted with the end of its review: no comparison opens that again", async () => {
    const paid = await payOne(harness);
    await untilSettled(harness);
    await harness.sandbox.control.addFault({
      match: { call: "payment_intents.retrieve" },
      times: null,
      fault: { type: "error", status: 404 },
    });
    const deps = without(paid);
    await compareNow(deps);
    expect(await findingWords(harness)).toEqual([`missing_there ${paid.objectId} open`]);
    const review = await untilReview(harness, "provider_object_missing");
    await compareNow(deps);
    expect(await findingWords(harness)).toEqual([`missing_there ${paid.objectId} open`]);
    await resolve(harness, review.id, "dismiss", { reason: "test data was deleted" });
    await untilClosed(harness, review.id);
    for (let runs = 0; runs < 2; runs += 1) await compareNow(deps);
    expect(await findingWords(harness)).toEqual([`missing_there ${paid.objectId} accepted`]);
    const [finding] = await harness.deps.db
      .sql`select accepted_reason, accepted_by from reconciliation_findings`;
    expect(finding).toMatchObject({ accepted_reason: "dismiss requested: test data was deleted" });
    await until(
      "an attempt at rest",
      () => harness.deps.db.sql`select 1 from attempts where due_at is not null`,
      (rows) => rows.length === 0,
    );
    expect(await reviewCount()).toBe(1);
  });

  test("is accepted where a person had the payment ended before any comparison saw it, and not where that came to nothing", async () => {
    const paid = await payOne(harness);
    await untilSettled(harness);
    const { sql } = harness.deps.db;
    const told = (id: string, reason: string) => sql`
      insert into timeline (tenant_id, payment_id, id, kind, reason, attempt_id, outcome)
      select tenant_id, payment_id, ${id}, 'request', ${reason}, id, 'by key_1' from attempts
       where payment_id = ${paid.paymentId}`;
    await told("tl_1", "mark_not_performed requested: deleted");
    const deps = without(paid);
    await compareNow(deps);
    expect(await findingWords(harness)).toEqual([`missing_there ${paid.objectId} open`]);
    await told("tl_2", "mark_not_performed");
    await compareNow(deps);
    expect(await findingWords(harness)).toEqual([`missing_there ${paid.objectId} accepted`]);
  });
});
