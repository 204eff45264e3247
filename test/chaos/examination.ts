import type { ChaosSystem } from "./system.js";

/** The exit of a doctor that has found something. */
const SOMETHING_IS_BROKEN = 3;

interface Report {
  readonly violations: readonly {
    readonly invariant: string;
    readonly payment_id: string | null;
    readonly detail: string;
  }[];
}

/** `pawl doctor --all` over what the blows have left. */
export async function examinationFaults(system: ChaosSystem): Promise<string[]> {
  const report = await system.command<Report>(["doctor", "--all"], {}, SOMETHING_IS_BROKEN);
  return report.violations.map(
    ({ invariant, payment_id: payment, detail }) =>
      `the doctor finds ${invariant} of ${payment ?? "no one payment"}: ${detail}`,
  );
}
