const PATIENCE_MS = 20_000;
const LOOK_AGAIN_MS = 20;

/** Looks until `done` holds and resolves to what was seen; throws with `what` and the last look after `patienceMs`. */
export async function until<T>(
  what: string,
  look: () => T | Promise<T>,
  done: (seen: T) => boolean,
  patienceMs = PATIENCE_MS,
): Promise<T> {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    const seen = await look();
    if (done(seen)) return seen;
    if (performance.now() > deadline) {
      throw new Error(
        `${what}: not within ${patienceMs} ms; last seen: ${JSON.stringify(seen) ?? "nothing"}`,
      );
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
  }
}
