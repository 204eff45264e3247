/** The first result of a keyed request, or the mark that it is still running (`answer` null). */
export interface KeyRecord {
  readonly fingerprint: string;
  readonly path: string;
  readonly firstUsedMs: number;
  readonly requestId: string;
  readonly answer: SavedAnswer | null;
}

/** Objects are never changed in place, so that the body saved under a key is the old one for ever. */
export interface SavedAnswer {
  readonly status: number;
  readonly body: object;
}
