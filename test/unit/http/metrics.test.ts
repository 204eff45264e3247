import perfHooks from "node:perf_hooks";
import { expect, test, vi } from "vitest";

test("the event loop is watched from the first scrape on, once, and that scrape shows it", async () => {
  const monitor = vi.spyOn(perfHooks, "monitorEventLoopDelay");
  const { observeNode, registry } = await import("../../../src/http/metrics.js");
  await import("../../../src/http/work-metrics.js");
  expect(monitor).not.toHaveBeenCalled();

  await observeNode();
  expect(await registry.metrics()).toMatch(/^nodejs_eventloop_lag_mean_seconds 0\.\d+$/m);
  expect(await registry.metrics()).toMatch(/^process_cpu_seconds_total \d/m);

  await observeNode();
  expect(monitor).toHaveBeenCalledTimes(1);
});
