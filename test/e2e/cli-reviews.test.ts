import { afterAll, beforeAll, expect, it } from "vitest";
import { VISA } from "../support/api-client.js";
import { describeWithFaults } from "../support/e2e-target.js";
import { run } from "../support/processes.js";
import { type Api, type System, startFaultySystem, untilStatus } from "../support/system.js";
import { until } from "../support/until.js";

interface ReviewDocument {
  readonly id: string;
  readonly status: string;
  readonly payment_id: string;
  readonly reason: string;
  readonly resolution: string | null;
  readonly closed_by: string | null;
  readonly resolved_by: string | null;
  readonly tenant_id: string;
  readonly allowed_resolutions: readonly { readonly resolution: string; readonly does: string }[];
  readonly timeline: readonly { readonly reason: string; readonly outcome: string | null }[];
}

describeWithFaults("pawl reviews", () => {
  let system: System;
  let api: Api;
  beforeAll(async () => {
    system = await startFaultySystem({ env: { UNKNOWN_REVIEW_AFTER_MS: "200" } });
    api = await system.api();
    await system.worker();
  });
  afterAll(async () => {
    await api.process.stop();
    await system.crashWorkers();
    await system.drop();
  });

  const failing = (...args: string[]) => run(["reviews", ...args], { env: system.settings() });

  it("show a review with its evidence, and resolve it once", async () => {
    await system.control.addFault({
      match: { call: "payment_intents.confirm" },
      fault: { type: "reset", effect: "none" },
    });
    await system.control.addFault({
      match: { call: "payment_intents.retrieve" },
      times: null,
      fault: { type: "error", status: 503 },
    });
    const { json: payment } = await api.client.pay(VISA, { prefer: "respond-async" });
    const paymentId = payment.id ?? "";
    await untilStatus(api.client, paymentId, ["needs_review"]);
    const { data } = await system.command<{ data: readonly ReviewDocument[] }>("reviews", "list");
    expect(data).toMatchObject([
      { payment_id: paymentId, reason: "outcome_unknown", status: "open", tenant_id: system.tenantId },
    ]);
    const id = data[0]?.id ?? "";
    const shown = await system.command<ReviewDocument>("reviews", "show", id);
    expect(shown.allowed_resolutions.map((one) => one.resolution)).toContain("cancel_at_provider");
    expect(shown.timeline.map((entry) => entry.outcome)).toContain("unanswered: server_error");
    const forPeople = await failing("show", id);
    expect(forPeople.stdout).toContain("cancel_at_provider");
    expect(forPeople.stdout).toContain("unanswered: server_error");

    const refused = await failing("resolve", id, "--as", "dismiss", "--reason", "why not", "--json");
    expect([refused.exit.code, refused.stdout]).toEqual([1, ""]);
    expect(refused.stderr).toMatch(/does not take dismiss; it takes .*cancel_at_provider/);
    const resolve = ["resolve", id, "--as", "cancel_at_provider", "--reason", "not charged, says the bank"];
    expect(await system.command<ReviewDocument>("reviews", ...resolve)).toMatchObject({
      id,
      status: "open",
      resolution: "cancel_at_provider",
      resolved_by: "command-line",
      tenant_id: system.tenantId,
    });
    const twice = await failing(...resolve, "--json");
    expect([twice.exit.code, twice.stdout]).toEqual([1, ""]);
    expect(twice.stderr).toContain("takes no decision any more");

    await system.control.clearFaults();
    await untilStatus(api.client, paymentId, ["failed"]);
    const closed = await until(
      "a closed review",
      () => system.command<ReviewDocument>("reviews", "show", id),
      (review) => review.status === "closed",
    );
    expect(closed).toMatchObject({ closed_by: "person", allowed_resolutions: [] });
    expect(closed.timeline.map((entry) => entry.reason)).toContain(
      "cancel_at_provider requested: not charged, says the bank",
    );
    expect((await system.command<{ data: unknown[] }>("reviews", "list")).data).toEqual([]);
  });

  it("say in one line what they cannot do, and tell what makes no sense from what is not there", async () => {
    const unknown = `rev_${"0".repeat(32)}`;
    const resolve = (resolution: string, reason: string) =>
      ["resolve", unknown, "--as", resolution, "--reason", reason] as const;
    for (const [args, code, said] of [
      [["show", unknown], 1, /there is no review/],
      [resolve("dismiss", "x"), 1, /no review/],
      [resolve("forget", "x"), 2, /--as: must be one of adopt_provider_object/],
      [[...resolve("dismiss", "x"), "--version", "latest"], 2, /--version: must be/],
      [resolve("dismiss", " "), 2, /--reason: must have/],
      [resolve("dismiss", "4242 4242 4242 4242"), 2, /--reason: looks like a card/],
    ] as const) {
      const failed = await failing(...args, "--json");
      expect([args.join(" "), failed.exit.code, failed.stdout]).toEqual([args.join(" "), code, ""]);
      expect(failed.stderr).toMatch(said);
      expect(failed.stderr).toMatch(/^pawl: .+\n$/);
    }
    for (const args of [["resolve", unknown], ["resolve", unknown, "--as", "dismiss"], ["show"]]) {
      expect((await failing(...args)).exit.code).toBe(2);
    }
  });
});
