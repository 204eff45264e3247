import { Hono } from "hono";
import { checkReadiness } from "../../operations/check-health.js";
import type { Deps } from "../../operations/deps.js";
import { observeNode, registry } from "../metrics.js";
import { refreshBacklog } from "../work-metrics.js";

/**
 * The operator's listener: /metrics, /healthz (the process lives), /readyz (it can do its work; 503 where it cannot).
 * No access log, since probes come every few seconds. `isStopping` turns /readyz to 503 before the API stops.
 */
export function createAdminApp(deps: Deps, isStopping: () => boolean = () => false): Hono {
  const app = new Hono();
  app.get("/metrics", async () => {
    await Promise.all([observeNode(), refreshBacklog(deps)]);
    return new Response(await registry.metrics(), { headers: { "Content-Type": registry.contentType } });
  });
  app.get("/healthz", (context) => context.json({ status: "ok" }));
  app.get("/readyz", async (context) => {
    const { ready, checks } = await checkReadiness(deps);
    const stopping = isStopping();
    const document = {
      ready: ready && !stopping,
      checks: { ...checks, process: stopping ? "stopping" : "ok" },
    };
    return context.json(document, document.ready ? 200 : 503);
  });
  app.onError((error, context) => {
    deps.log.error({ err: error, path: context.req.path }, "operator's request failed");
    return context.json({ status: "error" }, 500);
  });
  return app;
}
