import { describe, expect, it } from "vitest";
import type { Server } from "../../src/embedded-postgres/server.js";
import { supervise } from "../../src/embedded-postgres/supervise.js";
import type { Clock } from "../../src/lib/clock.js";
import { createLogger } from "../../src/lib/log.js";

interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
}

function defer<T>(): Deferred<T> {
  let settle: ((value: T) => void) | undefined;
  const promise = new Promise<T>((resolve) => {
    settle = resolve;
  });
  return { promise, resolve: (value) => settle?.(value) };
}

interface StagedServer extends Server {
  end(reason: string): void;
  readonly stops: string[];
}

function stageServer(): StagedServer {
  const { promise: exited, resolve } = defer<string>();
  const stops: string[] = [];
  return {
    pid: 1,
    port: 5432,
    hasExited: () => false,
    exited,
    end: resolve,
    stops,
    stop: async (mode) => {
      stops.push(mode);
      resolve(mode);
    },
  };
}

/** Each wait is over at once and is written down. */
function stageClock(): { clock: Clock; waitsMs: number[] } {
  const waitsMs: number[] = [];
  let nowMs = 0;
  const clock: Clock = {
    now: () => new Date(nowMs),
    monotonicMs: () => nowMs,
    sleep: async (ms) => {
      nowMs += ms;
      waitsMs.push(ms);
    },
  };
  return { clock, waitsMs };
}

describe("the watch over the server", () => {
  it("gives up after eight tries in a row, each after a longer wait, and says so", async () => {
    const first = stageServer();
    const lines: string[] = [];
    const gaveUp = defer<undefined>();
    const log = createLogger({
      level: "error",
      destination: {
        write: (line: string) => {
          lines.push(line);
          if (line.includes("stays down")) gaveUp.resolve(undefined);
        },
      },
    });
    const { clock, waitsMs } = stageClock();
    let tries = 0;
    const restart = async () => {
      tries += 1;
      if (tries === 1) throw new Error("no space");
      return "no space";
    };
    supervise(first, restart, log, clock);
    first.end("killed");
    await gaveUp.promise;
    expect(waitsMs).toEqual([100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800]);
    expect(lines.filter((line) => line.includes("no space"))).toHaveLength(8);
  });

  it("stops a server that was being restarted when the stop came", async () => {
    const first = stageServer();
    const second = stageServer();
    const asked = defer<undefined>();
    const restarted = defer<Server>();
    const restart = () => {
      asked.resolve(undefined);
      return restarted.promise;
    };
    const stop = supervise(first, restart, createLogger({ level: "silent" }), stageClock().clock);
    first.end("killed");
    await asked.promise;
    const stopped = stop("fast");
    restarted.resolve(second);
    await stopped;
    expect(second.stops).toEqual(["fast"]);
  });

  it("does not restart what it was told to stop", async () => {
    const first = stageServer();
    let restarts = 0;
    const restart = async () => {
      restarts += 1;
      return "restarted";
    };
    const stop = supervise(first, restart, createLogger({ level: "silent" }), stageClock().clock);
    await stop("immediate");
    expect(first.stops).toEqual(["immediate"]);
    expect(restarts).toBe(0);
  });
});
