import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { INVARIANT_NAMES } from "../../src/domain/doctor.js";
import { packageRoot } from "../../src/lib/package-root.js";
import { brokenLately, everythingBroken, type Lived, livedInDatabase } from "../support/doctor.js";
import { MONEY_CASES } from "../support/doctor-money-cases.js";
import { ALLOWED_CASES, OPEN_CASES } from "../support/doctor-open-cases.js";

const CASES = [...MONEY_CASES, ...OPEN_CASES];

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
