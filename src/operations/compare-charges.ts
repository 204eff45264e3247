import type { Difference } from "../domain/finding.js";
import type { ListedCharge, PageOutcome } from "../domain/provider.js";
import { compareCharge, missingThere, unreadableObject } from "../domain/reconcile.js";
import {
  readChargesInBand,
  readMarked,
  readOwners,
  readTenants,
  type WantedObject,
} from "../store/counterparts.js";
import { withDatabase } from "../store/db.js";
import { behind, lookForMissing } from "./compare-band.js";
import type { HeldRun, PhaseStep, Position } from "./reconcile-run.js";
import { repairFindings } from "./repair-finding.js";

type Page = Extract<PageOutcome<ListedCharge>, { type: "page" }>;

/** One page of the provider's charge objects against our payments, both ways. */
export async function compareCharges(held: HeldRun, position: Position): Promise<PhaseStep> {
  const { deps, run } = held;
  const { windowFrom: createdFrom, windowTo: createdTo } = run;
  const request = { createdFrom, createdTo, cursor: position.after };
  const page = await held.ask("list_charges", () => deps.provider.listCharges(request));
  held.recent.add([...page.items.map(({ id }) => id), ...page.unreadable]);
  const found = position.isCompared ? [] : await comparePage(held, page);
  const band = await lookForMissing(held, position, page, {
    prefix: "pay",
    question: "get",
    read: (ids) => readChargesInBand(deps.db.sql, held.account, ids),
    rowId: ({ ours }) => ours.paymentId,
    objectId: ({ objectId }) => objectId,
    ask: (objectId) => deps.provider.getCharge(objectId),
    missing: ({ ours }, objectId) => missingThere({ ...ours, objectId }),
  });
  const findings = await repairFindings(held, [...found, ...band.missing]);
  const objects = position.isCompared ? 0 : page.items.length + page.unreadable.length;
  return { objects, findings, position: behind(position, page, band) };
}

type Found = Difference & { readonly charge?: ListedCharge };

async function comparePage(held: HeldRun, page: Page): Promise<Found[]> {
  const unreadable = page.unreadable.map((id) => ({ objectId: id, attemptId: null, tenantId: null }));
  const read = await readCounterparts(held, [...page.items.map(wantedOf), ...unreadable]);
  return [
    ...page.items.flatMap((charge) =>
      compareCharge(charge, read(wantedOf(charge)), held.moment).map((found) => ({ ...found, charge })),
    ),
    ...unreadable.flatMap((wanted) => {
      const { owner } = read(wanted);
      if (owner !== null) return [unreadableObject(wanted.objectId, owner)];
      held.leaveOut([wanted.objectId]);
      return [];
    }),
  ];
}

export function wantedOf(charge: Pick<ListedCharge, "id" | "attemptId" | "tenantId">): WantedObject {
  return { objectId: charge.id, attemptId: charge.attemptId, tenantId: charge.tenantId };
}

/** What we have of these objects: whose they are, and whom their marks name where they are nobody's. */
export async function readCounterparts({ deps }: HeldRun, wanted: readonly WantedObject[]) {
  const { sql } = deps.db;
  const owners = await withDatabase(() => readOwners(sql, deps.provider.name, wanted));
  const unowned = wanted.filter(
    ({ objectId, attemptId, tenantId }) => !owners.has(objectId) && attemptId !== null && tenantId !== null,
  );
  const marked = await withDatabase(() => readMarked(sql, unowned));
  const tenantIds = new Set(unowned.flatMap(({ tenantId }) => (tenantId === null ? [] : [tenantId])));
  const tenants = await withDatabase(() => readTenants(sql, [...tenantIds]));
  return ({ objectId, tenantId }: WantedObject) => ({
    owner: owners.get(objectId) ?? null,
    marked: marked.get(objectId) ?? null,
    isTenantKnown: tenantId !== null && tenants.has(tenantId),
  });
}
