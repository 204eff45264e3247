import { describe, expect, it, vi } from "vitest";
import type { WorkerName } from "../../../src/config.js";
import type { Logger } from "../../../src/lib/log.js";
import { WorkerLoops } from "../../../src/operations/worker-loops.js";
import type { Database } from "../../../src/store/db.js";

/** A process with these workers: which of them are woken, and the channels on which other processes are told. */
async function stage(names: readonly WorkerName[], hasRoom = true) {
  const woken: string[] = [];
  const told: unknown[] = [];
  const heard = new Map<string, (payload: string) => void>();
  const sql = Object.assign(
    (_texts: TemplateStringsArray, channel: string) => {
      told.push(channel);
      return Promise.resolve([]);
    },
    { listen: (channel: string, hear: (payload: string) => void) => heard.set(channel, hear) },
  );
  const loops = new WorkerLoops({ sql } as unknown as Database, { debug: vi.fn() } as unknown as Logger);
  const loopOf = (name: WorkerName) => ({
    wake: () => woken.push(name),
    wakeIn: (ms: number) => woken.push(`${name} in ${ms}`),
    stop: () => Promise.resolve(void woken.push(`${name} stopped`)),
  });
  await loops.start(names, loopOf, () => hasRoom);
  return { loops, woken, told, heard };
}

describe("what is due", () => {
  it("wakes the worker of this process where that has room", async () => {
    const { loops, woken, told } = await stage(["attempts"]);
    loops.dueNow();
    loops.dueIn(250);
    expect({ woken, told }).toEqual({ woken: ["attempts", "attempts in 250"], told: [] });
    await loops.stop();
  });

  it.each([
    ["it has no room", ["attempts"], false],
    ["it has no such worker", ["reaper"], true],
  ] as const)("is told to other processes where %s", async (_why, names, hasRoom) => {
    const { loops, woken, told } = await stage(names, hasRoom);
    loops.dueNow();
    expect({ woken, told }).toEqual({ woken: [], told: ["pawl_attempts"] });
    await loops.stop();
  });

  it("is heard of by a process with the worker for it, and by no other", async () => {
    const { loops, woken, heard } = await stage(["attempts", "webhooks"]);
    expect([...heard.keys()]).toEqual(["pawl_attempts"]);
    heard.get("pawl_attempts")?.("");
    expect(woken).toEqual(["attempts"]);
    await loops.stop();
    expect(woken).toEqual(["attempts", "attempts stopped", "webhooks stopped"]);
  });
});

describe("a stored event of the provider's", () => {
  it("wakes the worker of this process, and is told to others where there is none", async () => {
    const here = await stage(["provider-events"]);
    here.loops.eventStored();
    expect({ woken: here.woken, told: here.told }).toEqual({ woken: ["provider-events"], told: [] });
    const elsewhere = await stage([]);
    elsewhere.loops.eventStored();
    expect({ woken: elsewhere.woken, told: elsewhere.told }).toEqual({
      woken: [],
      told: ["pawl_provider_events"],
    });
    await Promise.all([here.loops.stop(), elsewhere.loops.stop()]);
  });
});
