import type { Difference } from "../domain/finding.js";
import type { ProviderRefund } from "../domain/provider.js";
import {
  compareRefund,
  type RefundCounterpart,
  refundMissingThere,
} from "../domain/reconcile-after-charge.js";
import {
  readMarked,
  readMarkedRefunds,
  readOwners,
  readRefundsInBand,
  readRefundsOf,
  readTenants,
} from "../store/counterparts.js";
import { withDatabase } from "../store/db.js";
import { behind, lookForMissing } from "./compare-band.js";
import type { HeldRun, PhaseStep, Position } from "./reconcile-run.js";
import { repairFindings } from "./repair-finding.js";

/** One page of the provider's refunds against ours, both ways. */
export async function compareRefunds(held: HeldRun, position: Position): Promise<PhaseStep> {
  const { deps, run } = held;
  const { windowFrom: createdFrom, windowTo: createdTo } = run;
  const request = { createdFrom, createdTo, cursor: position.after };
  const page = await held.ask("list_refunds", () => deps.provider.listRefunds(request));
  held.recent.add([...page.items.map(({ id }) => id), ...page.unreadable]);
  held.leaveOut(page.unreadable);
  const found = position.isCompared ? [] : await comparePage(held, page.items);
  const band = await lookForMissing(held, position, page, {
    prefix: "re",
    question: "get_refund",
    read: (ids) => readRefundsInBand(deps.db.sql, held.account, ids),
    rowId: ({ ours }) => ours.refundId,
    objectId: ({ objectId }) => objectId,
    ask: (refundId) => deps.provider.getRefund(refundId),
    missing: ({ ours }, providerRefundId) => refundMissingThere({ ...ours, providerRefundId }),
  });
  const findings = await repairFindings(held, [...found, ...band.missing]);
  const objects = position.isCompared ? 0 : page.items.length;
  return { objects, findings, position: behind(position, page, band) };
}

async function comparePage(held: HeldRun, refunds: readonly ProviderRefund[]): Promise<Difference[]> {
  const read = await readRefundCounterparts(held, refunds);
  return refunds.flatMap((refund) => compareRefund(refund, read(refund), held.moment));
}

/** What we have of these refunds: their charges, their rows by the provider's id or by their marks. */
export async function readRefundCounterparts({ deps }: HeldRun, refunds: readonly ProviderRefund[]) {
  const { sql } = deps.db;
  const { name } = deps.provider;
  const chargeIds = new Set(refunds.flatMap(({ chargeId }) => (chargeId === null ? [] : [chargeId])));
  const charges = [...chargeIds].map((objectId) => ({ objectId, attemptId: null, tenantId: null }));
  const named = refunds.flatMap(({ id, chargeId }) =>
    chargeId === null ? [] : [{ refundId: id, chargeId }],
  );
  const marks = refunds.flatMap(({ id, attemptId, tenantId }) =>
    attemptId === null || tenantId === null ? [] : [{ objectId: id, attemptId, tenantId }],
  );
  const owners = await withDatabase(() => readOwners(sql, name, charges));
  const known = await withDatabase(() => readRefundsOf(sql, name, named));
  const marked = await withDatabase(() => readMarked(sql, marks));
  const byMarks = await withDatabase(() => readMarkedRefunds(sql, marks));
  const tenants = await withDatabase(() =>
    readTenants(sql, [...new Set(marks.map(({ tenantId }) => tenantId))]),
  );
  return ({ id, chargeId, tenantId }: ProviderRefund): RefundCounterpart => ({
    charge: chargeId === null ? null : (owners.get(chargeId) ?? null),
    refund: known.get(id) ?? byMarks.get(id) ?? null,
    marked: marked.get(id) ?? null,
    isTenantKnown: tenantId !== null && tenants.has(tenantId),
  });
}
