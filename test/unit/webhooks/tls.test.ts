import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { systemClock } from "../../../src/lib/clock.js";
import { createWebhookSender } from "../../../src/webhooks/webhook-sender.js";
import { describeWithProgram } from "../../support/needs-program.js";

describeWithProgram("openssl", "over TLS", (program) => {
  let certificate: string;
  let port: number;
  let requests = 0;
  let close: () => Promise<unknown>;

  beforeAll(async () => {
    const folder = mkdtempSync(join(tmpdir(), "pawl-tls-"));
    const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
    const subject = ["-subj", "/CN=receiver.test", "-addext", "subjectAltName=DNS:receiver.test"];
    const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    execFileSync(
      program,
      ["req", "-x509", ...curve, "-keyout", key, "-out", cert, "-days", "1", ...subject],
      {
        stdio: "ignore",
      },
    );
    certificate = readFileSync(cert, "utf8");
    const server = createServer({ key: readFileSync(key), cert: certificate }, (_request, answer) => {
      requests += 1;
      answer.end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    port = (server.address() as AddressInfo).port;
    rmSync(folder, { recursive: true });
    close = () => new Promise((resolve) => server.close(resolve));
  });
  afterAll(() => close());

  const send = (name: string, authorities?: string) =>
    createWebhookSender({
      timeoutMs: 5_000,
      allowPrivate: true,
      userAgent: "pawl/test",
      clock: systemClock,
      resolveName: async () => ["127.0.0.1"],
      ...(authorities === undefined ? {} : { authorities }),
    }).send({
      url: `https://${name}:${port}/`,
      eventId: "evt_1",
      body: "{}",
      secrets: ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
    });

  test("a server with a certificate of its name is delivered to", async () => {
    expect(await send("receiver.test", certificate)).toMatchObject({ delivered: true, status: 200 });
    expect(requests).toBe(1);
  });

  test("one of another name, or with a certificate that nobody vouches for, gets nothing", async () => {
    const before = requests;
    const refused = { delivered: false, status: null, fault: "tls_failed", answer: null };
    expect(await send("other.test", certificate)).toEqual(refused);
    expect(await send("receiver.test")).toEqual(refused);
    expect(requests).toBe(before);
  });
});
