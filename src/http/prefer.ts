import type { WaitPreference } from "../operations/keyed-request.js";

/** More than this is read as this: a longer wait would outlive the time-outs of proxies on the way. */
const LONGEST_WAIT_SECONDS = 30;

export interface ParsedPreference extends WaitPreference {
  /** The value of Preference-Applied; null where nothing was asked for. */
  readonly applied: string | null;
}

// RFC 7240 section 2: token [ BWS "=" BWS ( token / quoted-string ) ] *( OWS ";" [ OWS parameter ] ). Parameters are not used.
const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const PREFERENCE = new RegExp(`^(${TOKEN})(?:[ \\t]*=[ \\t]*(?:(${TOKEN})|"([^"\\\\]*)"))?[ \\t]*(?:;.*)?$`);
const DELTA_SECONDS = /^[0-9]{1,10}$/;

/**
 * How long the caller wants to wait: `wait=N` (seconds, cut to 30), or `respond-async`, which is `wait=0` unless a wait
 * stands beside it (RFC 7240 sections 4.1, 4.3). The first of a kind counts; what is malformed is ignored. `value` is
 * the Prefer lines joined by commas.
 */
export function parsePrefer(value: string | undefined, defaultWaitMs: number): ParsedPreference {
  if (value === undefined) return { waitMs: defaultWaitMs, explicit: false, applied: null };
  let seen = false;
  let waitSeconds: number | null = null;
  let respondAsync = false;
  for (const text of value.split(",")) {
    const match = PREFERENCE.exec(text.trim());
    const name = match?.[1]?.toLowerCase();
    if (name === "respond-async") respondAsync = true;
    if (name !== "wait" || seen) continue;
    seen = true;
    const seconds = match?.[2] ?? match?.[3] ?? "";
    if (DELTA_SECONDS.test(seconds)) waitSeconds = Math.min(Number(seconds), LONGEST_WAIT_SECONDS);
  }
  if (waitSeconds !== null)
    return { waitMs: waitSeconds * 1000, explicit: true, applied: `wait=${waitSeconds}` };
  if (respondAsync) return { waitMs: 0, explicit: true, applied: "respond-async" };
  return { waitMs: defaultWaitMs, explicit: false, applied: null };
}
