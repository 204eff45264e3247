import { describe, expect, it } from "vitest";
import { CHARGE_ID, found } from "./charge-fixtures.js";
import { answered, charge, instructed } from "./review-scenes.js";

/** The marker of a charge's object names an attempt and a tenant; each half alone can be another's. */
describe("a charge's own object of which half the marker is another's", () => {
  it.each([
    ["attempt", { attemptId: "att_other" }],
    ["tenant", { tenantId: "ten_other" }],
  ] as const)("%s: is taken, or canceled, only where the person names it", (_half, marker) => {
    for (const [resolution, status] of [
      ["adopt_provider_object", "succeeded"],
      ["cancel_at_provider", "created"],
    ] as const) {
      const view = charge("confirm_unknown");
      const shown = answered(instructed(view, resolution), "get", found(status, marker));
      expect(shown.change).toMatchObject({
        instruction: "returned",
        reason: `${resolution} is not possible: provider_object_foreign`,
      });
      expect(shown.payment.status).toBe("needs_review");
      const named = answered(instructed(view, resolution, CHARGE_ID), "get", found(status, marker));
      expect(named.change.instruction).not.toBe("returned");
    }
  });
});
