import { expect, test } from "vitest";
import { answerWith, isSignedWith } from "../support/receiver.js";
import { until } from "../support/until.js";
import { deliveriesOf, newSecret, useWebhookWorld } from "../support/webhook-stage.js";

const stage = useWebhookWorld();

test("an event reaches every endpoint that wants it, signed, and ends there", async () => {
  const world = await stage.start();
  const receiver = await world.receiver();
  const all = await world.endpoint(receiver.url("/all"));
  const one = await world.endpoint(receiver.url("/one"), { events: ["payment.succeeded"] });
  await world.endpoint(receiver.url("/other"), { events: ["payment.failed"] });
  const process = await world.process();
  const id = await world.event({ object: { object: "payment", amount: 4200, text: "žluť €" } });
  await until(
    "two deliveries",
    () => deliveriesOf(world),
    (rows) => rows.filter((row) => row.state === "delivered").length === 2,
  );
  expect(receiver.at("/other")).toEqual([]);
  for (const [path, endpoint] of [
    ["/all", all],
    ["/one", one],
  ] as const) {
    const [got, ...more] = receiver.at(path);
    expect(more).toEqual([]);
    expect(isSignedWith(endpoint.secret, got!)).toBe(true);
    expect(isSignedWith(newSecret(), got!)).toBe(false);
    expect(got!.headers).toMatchObject({
      "webhook-id": id,
      "content-type": "application/json",
      "user-agent": "pawl/test",
    });
  }
  expect(process.tries).toEqual(["webhook delivered", "webhook delivered"]);
});

test("retries", async () => {
  const world = await stage.start();
  const receiver = await world.receiver();
  receiver.behave("/", answerWith(500, "no"));
  await world.endpoint(receiver.url());
  await world.process();
  await world.event();
  await until(
    "a failed delivery",
    () => deliveriesOf(world),
    (rows) => rows[0]?.state === "failed",
  );
  expect(await deliveriesOf(world)).toMatchObject([
    { tries: 4, last_status: 500, last_error: "status", last_answer: "no", due_at: null },
  ]);
});
