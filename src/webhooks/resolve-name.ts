import { lookup, Resolver } from "node:dns/promises";
import { isPublicAddress } from "./public-address.js";

/** Every address of a name. Rejects where there is none. */
export type ResolveName = (name: string) => Promise<readonly string[]>;

const QUERY_TIMEOUT_MS = 2_000;
const QUERY_TRIES = 2;

/**
 * Asks the name servers itself and not through the system's look-up: that one reads the hosts file and blocks one of
 * few threads that the whole process shares, so a slow name server of one receiver would delay all work.
 */
export const askNameServers: ResolveName = async (name) => {
  const resolver = new Resolver({ timeout: QUERY_TIMEOUT_MS, tries: QUERY_TRIES });
  const found = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
  return found.flatMap((family) => (family.status === "fulfilled" ? family.value : []));
};

/** For development: names of the hosts file and of container networks, too. */
export const askSystem: ResolveName = async (name) =>
  (await lookup(name, { all: true, verbatim: true })).map(({ address }) => address);

/** The name has no address, or one that must not be called; which of the two is told to nobody. */
export class AddressRefused extends Error {
  override readonly name = "AddressRefused";
}

/** The addresses that a connection may go to. Throws AddressRefused unless each address of the name is public. */
export async function allowedAddresses(
  name: string,
  resolve: ResolveName,
  allowPrivate: boolean,
): Promise<readonly string[]> {
  const addresses = await resolve(name).catch(() => []);
  const allowed = addresses.length > 0 && (allowPrivate || addresses.every(isPublicAddress));
  if (!allowed) throw new AddressRefused("the name has no public address");
  return addresses;
}
