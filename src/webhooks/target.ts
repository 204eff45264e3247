import { isIP } from "node:net";
import { isPublicAddress } from "./public-address.js";

/** The URL parser repairs these; what it would repair is refused. */
const PLAIN = /^https?:\/\/[^\s\p{Cc}\\/][^\s\p{Cc}\\]*$/iu;
/** RFC 6761 section 6.3, whatever a resolver makes of it. */
const LOCALHOST = /^(?:.+\.)?localhost\.?$/;

/**
 * The URL, where its text alone does not forbid it: https, no user info, and a host that is a name or a public address.
 * `allowPrivate` also allows http and any host. Odd spellings of an IPv4 address (`127.1`, hexadecimal, octal, one
 * number) are read as the address they are, since the URL parser does so.
 */
export function targetOf(text: string, allowPrivate: boolean): URL | null {
  if (!PLAIN.test(text) || !URL.canParse(text)) return null;
  const url = new URL(text);
  if (url.username !== "" || url.password !== "") return null;
  if (allowPrivate) return url;
  if (url.protocol !== "https:") return null;
  const host = hostOf(url);
  const mayStand = isIP(host) === 0 ? !LOCALHOST.test(host) : isPublicAddress(host);
  return mayStand ? url : null;
}

/** The name or address, an IPv6 one without its brackets. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, "$1");
}
