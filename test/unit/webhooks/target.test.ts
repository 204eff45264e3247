import { describe, expect, it, test } from "vitest";
import { systemClock } from "../../../src/lib/clock.js";
import { isPublicAddress } from "../../../src/webhooks/public-address.js";
import { createWebhookSender } from "../../../src/webhooks/webhook-sender.js";

/** What a name resolves to is the test's to say. */
function senderFor(addresses: readonly string[] | Error, allowPrivate = false) {
  const asked: string[] = [];
  const sender = createWebhookSender({
    timeoutMs: 500,
    allowPrivate,
    userAgent: "pawl/test",
    clock: systemClock,
    resolveName: async (name) => {
      asked.push(name);
      if (addresses instanceof Error) throw addresses;
      return addresses;
    },
  });
  return { sender, asked };
}

const PUBLIC = ["93.184.216.34", "2606:4700::6810:84e5"];

describe("a URL is refused before its name is looked up", () => {
  test.each([
    ["the metadata address", "https://169.254.169.254/latest/meta-data"],
    ["loopback with a port", "https://127.0.0.1:5432/"],
    ["any loopback address", "https://127.8.9.10/"],
    ["loopback, short", "https://127.1/"],
    ["loopback as one number", "https://2130706433/"],
    ["loopback in hexadecimal", "https://0x7f000001/"],
    ["loopback in hexadecimal parts", "https://0x7f.0.0.0x1/"],
    ["loopback in octal", "https://0177.0.0.1/"],
    ["the metadata address as one number", "https://2852039166/"],
    ["loopback with a dot at the end", "https://127.0.0.1./"],
    ["loopback in wide digits", "https://①②⑦.0.0.1/"],
    ["localhost", "https://localhost/"],
    ["localhost with a port", "https://localhost:8443/"],
    ["localhost with a dot at the end", "https://localhost./"],
    ["a name below localhost", "https://app.localhost/"],
    ["localhost in capitals", "https://LOCALHOST/"],
    ["unspecified", "https://0.0.0.0/"],
    ["unspecified, short", "https://0/"],
    ["10/8", "https://10.1.2.3/"],
    ["172.16/12", "https://172.31.255.254/"],
    ["192.168/16", "https://192.168.1.1/"],
    ["carrier-grade NAT", "https://100.64.0.1/"],
    ["link-local", "https://169.254.10.10/"],
    ["multicast", "https://224.0.0.1/"],
    ["broadcast", "https://255.255.255.255/"],
    ["reserved", "https://240.0.0.1/"],
    ["benchmarking", "https://198.18.0.1/"],
    ["documentation", "https://203.0.113.7/"],
    ["IPv6 loopback", "https://[::1]/"],
    ["IPv6 loopback in full", "https://[0:0:0:0:0:0:0:1]:443/"],
    ["IPv6 unspecified", "https://[::]/"],
    ["IPv6 link-local", "https://[fe80::1]/"],
    ["IPv6 site-local", "https://[fec0::1]/"],
    ["IPv6 unique-local", "https://[fd12:3456::1]/"],
    ["IPv6 unique-local of a cloud's metadata", "https://[fd00:ec2::254]/"],
    ["IPv6 multicast", "https://[ff02::1]/"],
    ["IPv4-mapped loopback", "https://[::ffff:127.0.0.1]/"],
    ["IPv4-mapped metadata, in hexadecimal", "https://[::ffff:a9fe:a9fe]/"],
    ["IPv4-mapped, of a public address", "https://[::ffff:8.8.8.8]/"],
    ["IPv4-compatible loopback", "https://[::127.0.0.1]/"],
    ["6to4 of a private address", "https://[2002:0a00:0001::]/"],
    ["NAT64 of the metadata address", "https://[64:ff9b::a9fe:a9fe]/"],
    ["NAT64 of a local prefix", "https://[64:ff9b:1::a00:1]/"],
    ["Teredo", "https://[2001::1]/"],
    ["IPv6 documentation", "https://[2001:db8::1]/"],
    ["IPv6 documentation, the newer range", "https://[3fff::1]/"],
    ["user info", "https://user:secret@example.com/"],
    ["a user name alone", "https://user@example.com/"],
    ["an address behind user info", "https://example.com@127.0.0.1/"],
    ["http", "http://example.com/"],
    ["another scheme", "ftp://example.com/"],
    ["a file", "file:///etc/passwd"],
    ["a script", "javascript:alert(1)"],
    ["gopher", "gopher://127.0.0.1:6379/_INFO"],
    ["no host", "https:///127.0.0.1/"],
    ["slashes that a browser repairs", "https:\\\\example.com/"],
    ["a line break that a browser drops", "https://exam\nple.com/"],
    ["a blank", "https://example.com /"],
    ["no URL", "example.com"],
    ["nothing", ""],
  ])("%s", async (_, url) => {
    const { sender, asked } = senderFor(PUBLIC);
    expect(await sender.mayTarget(url)).toBe(false);
    expect(await sender.send({ url, eventId: "evt_1", body: "{}", secrets: [SECRET] })).toMatchObject({
      delivered: false,
      fault: "address_refused",
    });
    expect(asked).toEqual([]);
  });
});

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

describe("a name is refused", () => {
  test.each([
    ["that resolves to loopback", ["127.0.0.1"]],
    ["that resolves to IPv6 loopback", ["::1"]],
    ["that resolves to a private address", ["10.0.0.7"]],
    ["that resolves to the metadata address", ["169.254.169.254"]],
    ["of whose addresses one is private", ["93.184.216.34", "192.168.0.1"]],
    ["that resolves to an IPv4-mapped address", ["::ffff:10.0.0.1"]],
    ["that resolves to no address", []],
    ["that resolves to something that is no address", ["example.com"]],
  ])("%s", async (_, addresses) => {
    expect(await senderFor(addresses).sender.mayTarget("https://example.com/hook")).toBe(false);
  });

  test("whose look-up fails", async () => {
    expect(await senderFor(new Error("SERVFAIL")).sender.mayTarget("https://example.com/")).toBe(false);
  });

  test("whose look-up does not end within the deadline", async () => {
    const sender = createWebhookSender({
      timeoutMs: 20,
      allowPrivate: false,
      userAgent: "pawl/test",
      clock: systemClock,
      resolveName: () => new Promise<readonly string[]>(() => undefined),
    });
    expect(await sender.mayTarget("https://example.com/")).toBe(false);
  });
});

describe("a URL is welcome", () => {
  test.each([
    ["a name", "https://example.com/hook?x=1"],
    ["with an odd port", "https://example.com:8443/"],
    ["a public IPv4 address", "https://93.184.216.34/"],
    ["a public IPv6 address", "https://[2606:4700::6810:84e5]:8443/"],
    ["an international name", "https://bücher.example/"],
  ])("%s", async (_, url) => {
    expect(await senderFor(PUBLIC).sender.mayTarget(url)).toBe(true);
  });

  test.each(["http://127.0.0.1:3000/", "http://localhost/", "https://10.0.0.1/", "http://[::1]:80/"])(
    "%s, where private targets are allowed",
    async (url) => {
      expect(await senderFor([], true).sender.mayTarget(url)).toBe(true);
    },
  );

  test.each(["ftp://127.0.0.1/", "http://user:pw@127.0.0.1/", "no url"])(
    "%s is not, even there",
    async (url) => {
      expect(await senderFor([], true).sender.mayTarget(url)).toBe(false);
    },
  );
});

describe("a public address", () => {
  it.each(["1.1.1.1", "93.184.216.34", "2606:4700::1111", "2a00:1450:4001:80e::200e"])("%s", (address) => {
    expect(isPublicAddress(address)).toBe(true);
  });

  it.each(["", "example.com", "1.1.1.1/8", "[::1]", "fe80::1%eth0", "5f00::1", "4000::1", "100::1"])(
    "%s is none",
    (address) => {
      expect(isPublicAddress(address)).toBe(false);
    },
  );
});
