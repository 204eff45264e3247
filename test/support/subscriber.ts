import { afterAll, beforeAll } from "vitest";
import type { ApiClient } from "./api-client.js";
import { type SubscriptionDocument, subscribe } from "./merchant.js";
import type { Pair } from "./pair.js";
import { type Behaviour, type Received, Receiver } from "./receiver.js";
import { until } from "./until.js";

/** For processes whose receivers listen on loopback, and whose schedule ends while a test waits. */
export const DELIVERING = {
  WEBHOOK_ALLOW_PRIVATE_TARGETS: "true",
  WEBHOOK_TIMEOUT_MS: "1000",
  WEBHOOK_RETRY_SCHEDULE_MS: "100,300,700,1500",
  RELAY_INTERVAL_MS: "20",
  WEBHOOK_INTERVAL_MS: "20",
} as const;

/** One registered receiver. */
export interface Subscriber extends SubscriptionDocument {
  /** Every request so far, tries included. */
  readonly received: readonly Received[];
  /** Of one payment, its refunds included. */
  about(paymentId: string): Received[];
  unsubscribe(): Promise<void>;
}

/** For a test file with a pair: registers receivers of its tenant, each at a path of its own. */
export function useSubscribers(pair: Pair) {
  let receiver: Receiver;
  let count = 0;
  beforeAll(async () => {
    receiver = await Receiver.start();
  });
  afterAll(() => receiver.stop());
  return {
    get receiver() {
      return receiver;
    },
    async subscribe(
      behaviour?: Behaviour,
      options: { client?: ApiClient; events?: readonly string[] } = {},
    ): Promise<Subscriber> {
      const client = options.client ?? pair.client;
      const path = `/${(count += 1)}`;
      if (behaviour !== undefined) receiver.behave(path, behaviour);
      const subscription = await subscribe(client, receiver.url(path), options.events);
      return {
        ...subscription,
        get received() {
          return receiver.at(path);
        },
        about: (paymentId) => receiver.at(path).filter((one) => isAbout(one, paymentId)),
        async unsubscribe() {
          await client.request("DELETE", `/v1/webhook_endpoints/${subscription.id}`, {});
        },
      };
    },
  };
}

function isAbout({ event: { data } }: Received, paymentId: string): boolean {
  return data.object["id"] === paymentId || data.object["payment_id"] === paymentId;
}

/** Waits until it has got these types about this payment, whatever else it got; the requests about it. */
export function untilTold(
  subscriber: Subscriber,
  paymentId: string,
  types: readonly string[],
): Promise<Received[]> {
  return until(
    `${types.join(", ")} of ${paymentId}`,
    () => subscriber.about(paymentId),
    (requests) => types.every((type) => requests.some((one) => one.event.type === type)),
  );
}
