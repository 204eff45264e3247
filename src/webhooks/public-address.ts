import ipaddr from "ipaddr.js";

/** RFC 4291 section 2.4: what the IANA gives out for the public internet. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR("2000::/3");
/** RFC 9637: for documentation, and still unknown to the table of ranges. */
const DOCUMENTATION = ipaddr.IPv6.parseCIDR("3fff::/20");

/**
 * Whether this is an address of the public internet, in its plain form. Whatever is special by the IANA's registries
 * is not, nor is any IPv6 address that stands for an IPv4 one (mapped, compatible, translated, tunnelled).
 */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.parse(address);
  if (parsed.range() !== "unicast") return false;
  if (parsed.kind() === "ipv4") return true;
  const six = parsed as ipaddr.IPv6;
  return six.match(GLOBAL_UNICAST) && !six.match(DOCUMENTATION);
}
