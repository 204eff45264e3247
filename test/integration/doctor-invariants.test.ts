import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { INVARIANT_NAMES } from "../../src/domain/doctor.js";
import { packageRoot } from "../../src/lib/package-root.js";
import { brokenLately, everythingBroken, type Lived, livedInDatabase } from "../support/doctor.js";
import { AHEAD_CASES } from "../support/doctor-ahead-cases.js";
import { MONEY_CASES } from "../support/doctor-money-cases.js";
import { ALLOWED_CASES, OPEN_CASES } from "../support/doctor-open-cases.js";

const CASES = [...MONEY_CASES, ...OPEN_CASES, ...AHEAD_CASES];

describe("the doctor names what is broken, and nothing else", () => {
  let lived: Lived;
  beforeAll(async () => {
    lived = await livedInDatabase();
  });
  afterEach(() => lived.restore());
  afterAll(() => lived.drop());

  test("in a database in which nothing is", async () => {
    expect(await everythingBroken(lived.store)).toEqual([]);
  });

  test.each(ALLOWED_CASES.map((one) => [one.breaks, one] as const))("and not %s", async (_, { by }) => {
    await by(lived.admin, lived);
    expect(await everythingBroken(lived.store)).toEqual([]);
  });

  test("and each invariant is broken here", () => {
    const broken = new Set(CASES.flatMap((one) => one.finds(lived)).map(([invariant]) => invariant));
    expect([...broken].sort()).toEqual([...INVARIANT_NAMES].sort());
  });

  test("and each has its section in docs/doctor.md", () => {
    const page = readFileSync(join(packageRoot(), "docs/doctor.md"), "utf8");
    const sections = [...page.matchAll(/^### (\w+)$/gm)].map(([, name]) => name);
    expect(sections.sort()).toEqual([...INVARIANT_NAMES].sort());
  });

  test("and what docs/doctor.md gives against a clock that ran ahead puts it right", async () => {
    const page = readFileSync(join(packageRoot(), "docs/doctor.md"), "utf8");
    const statements = page.match(/^ {4}update [^;]+;$/gm) ?? [];
    expect(statements).toHaveLength(4);
    const cases = AHEAD_CASES.filter(
      ({ breaks }) => breaks.includes("nobody lives") || breaks.includes("lease"),
    );
    expect(cases).toHaveLength(5);
    for (const { by } of cases) {
      await by(lived.admin, lived);
      expect(await everythingBroken(lived.store)).not.toEqual([]);
      for (const statement of statements) await lived.admin.unsafe(statement);
      await lived.admin`update installation set created_at = now()`;
      expect(await everythingBroken(lived.store)).toEqual([]);
    }
    const [run] = await lived.admin<{ free: boolean }[]>`
      select lease_expires_at is null as free from reconciliation_runs where id = 'run_ahead'`;
    expect(run?.free).toBe(true);
  });

  test.each(CASES.map((one) => [one.breaks, one] as const))(
    "%s",
    async (_, { by, finds, onlyInAll = [] }) => {
      await by(lived.admin, lived);
      const expected: unknown[] = finds(lived).map(([invariant, paymentId, ids]): unknown =>
        expect.objectContaining({ invariant, paymentId, ...(ids === undefined ? {} : { ids }) }),
      );
      const all = await everythingBroken(lived.store);
      expect(all).toHaveLength(expected.length);
      expect(all).toEqual(expect.arrayContaining(expected));
      const lately = await brokenLately(lived.store);
      const nearby = expected.filter((_, at) => !onlyInAll.includes(at));
      expect(lately).toHaveLength(nearby.length);
      expect(lately).toEqual(expect.arrayContaining(nearby));
    },
  );
});
