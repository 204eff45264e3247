import { describe, expect, test } from "vitest";
import type { Deps } from "../../src/operations/deps.js";
import type { KeyedAnswer } from "../../src/operations/keyed-request.js";
import { documentOf, type Harness, newKey, pay, until } from "../support/harness.js";
import { onlyObject, PATIENT, useStage, wireOf } from "../support/stage.js";

const stage = useStage();

interface Crowd {
  readonly answers: readonly KeyedAnswer[];
  readonly refusals: readonly string[];
}

/** So many identical requests at once, spread over the processes; what they are refused with is in `refusals` at once. */
async function sendTogether(
  harness: Harness,
  processes: readonly Deps[],
  count: number,
  request: { readonly key: string; readonly explicit: boolean },
  refusals: string[] = [],
): Promise<Crowd> {
  const sent = Array.from({ length: count }, async (_, at) => {
    try {
      return await pay(harness, { ...request, deps: processes[at % processes.length] as Deps });
    } catch (error) {
      refusals.push(codeOf(error));
      return null;
    }
  });
  const answers = (await Promise.all(sent)).filter((answer) => answer !== null);
  return { answers, refusals };
}

function codeOf(error: unknown): string {
  return (error as { code?: string }).code ?? String(error);
}

function bodiesOf(answers: readonly KeyedAnswer[]): ReadonlySet<string> {
  return new Set(answers.map((answer) => (answer.type === "final" ? answer.response.body : answer.type)));
}

describe.each([2, 50])("%i identical requests over two processes", (count) => {
  test("that are ready to wait all get the one answer of the one charge", async () => {
    const harness = await stage.start();
    const other = await harness.another({ env: PATIENT });
    const request = { key: newKey(), explicit: true };
    const { answers, refusals } = await sendTogether(harness, [harness.deps, other.deps], count, request);
    expect(refusals).toEqual([]);
    expect(answers).toHaveLength(count);
    expect(bodiesOf(answers).size).toBe(1);
    expect(answers.filter((answer) => answer.type === "final" && !answer.replayed)).toHaveLength(1);
    expect(await wireOf(harness)).toEqual(["create 200", "confirm 200"]);
    expect((await onlyObject(harness)).successful_charges).toBe(1);
  });

  test("that do not wait are told that the first still runs, while it does", async () => {
    const harness = await stage.start();
    const other = await harness.another({ env: PATIENT });
    const { control } = harness.sandbox;
    await control.addFault({
      match: { call: "payment_intents.create" },
      fault: { type: "hang", effect: "applied", hang_ms: null },
    });
    const key = newKey();
    const refused: string[] = [];
    const processes = [harness.deps, other.deps];
    const crowd = sendTogether(harness, processes, count, { key, explicit: false }, refused);
    await control.waitForHeld();
    // One that came later than the answer would be told what became of the first.
    await until(
      "every other request refused",
      () => Promise.resolve(refused.length),
      (refusals) => refusals === count - 1,
    );
    const repeated = await pay(harness, { key, deps: other.deps }).catch((error: unknown) => error);
    expect(repeated).toMatchObject({
      code: "idempotency_key_in_progress",
      extra: { retryAfterSeconds: 1, payment: { status: "processing" } },
    });
    await control.release();
    const { answers, refusals } = await crowd;
    expect(new Set(refusals)).toEqual(new Set(["idempotency_key_in_progress"]));
    expect(refusals).toHaveLength(count - 1);
    expect(answers.map((answer) => documentOf(answer).status)).toEqual(["succeeded"]);
    expect((await onlyObject(harness)).successful_charges).toBe(1);
  });
});

test("a process that starts later replays the answer without asking the provider anything", async () => {
  const harness = await stage.start();
  const key = newKey();
  const first = await pay(harness, { key });
  const before = await harness.sandbox.control.listRequests();
  const later = await harness.another({ workers: [] });
  const replay = await pay(harness, { key, deps: later.deps });
  if (first.type !== "final" || replay.type !== "final") throw new Error("not final");
  expect(replay.replayed).toBe(true);
  expect(replay.response).toEqual(first.response);
  expect(replay.keyExpiresAt).toEqual(first.keyExpiresAt);
  expect(await harness.sandbox.control.listRequests()).toHaveLength(before.length);
});

test("a request that waits in a process without workers gets what another process's worker did", async () => {
  const harness = await stage.start({ workers: [] });
  await harness.another({ env: PATIENT });
  const answer = await pay(harness);
  expect(documentOf(answer).status).toBe("succeeded");
  expect(answer).toMatchObject({ replayed: false });
});
