import { expect, test } from "vitest";
import { unanswered } from "../../../src/operations/provider-event-steps.js";

test.each(["absent", "missing"] as const)(
  "an object that is %s is asked for again, and the operator reads why",
  (type) => {
    expect(unanswered({ type })).toEqual({ type: "again", reason: `provider_object_${type}` });
  },
);

test("a provider that does not answer is asked again, no sooner than it says", () => {
  const answer = { type: "unanswered", reason: "rate_limited", retryAfterMs: 2_000 } as const;
  expect(unanswered(answer)).toEqual({
    type: "again",
    reason: "unanswered: rate_limited",
    retryAfterMs: 2_000,
    uncounted: true,
  });
});

test.each(["unreadable", "refused", "forbidden"] as const)(
  "%s is about this object or our key, and is a try like any other",
  (reason) => {
    const answer = { type: "unanswered", reason, retryAfterMs: null } as const;
    expect(unanswered(answer)).toMatchObject({ type: "again", uncounted: false });
  },
);
