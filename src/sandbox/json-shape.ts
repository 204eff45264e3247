/** A control request that cannot be carried out as given; the message names the member. */
export class ControlError extends Error {
  readonly status: 400 | 404 | 409;

  constructor(message: string, status: 400 | 404 | 409 = 400) {
    super(message);
    this.status = status;
  }
}

/** Reads the members of a JSON object one by one; `end` refuses those that nobody asked for. */
export class JsonReader {
  readonly #value: Readonly<Record<string, unknown>>;
  readonly #path: string;
  readonly #asked = new Set<string>();

  constructor(value: unknown, path = "") {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      throw new ControlError(`${path === "" ? "the body" : path} must be a JSON object`);
    }
    this.#value = value as Record<string, unknown>;
    this.#path = path;
  }

  string(name: string): string | undefined {
    return this.#typed(name, "a string", (value) => typeof value === "string") as string | undefined;
  }

  boolean(name: string): boolean | undefined {
    return this.#typed(name, "true or false", (value) => typeof value === "boolean") as boolean | undefined;
  }

  /** A whole number from `least` on. */
  integer(name: string, least: number): number | undefined {
    const fits = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= least;
    return this.#typed(name, `a whole number from ${least}`, fits) as number | undefined;
  }

  fraction(name: string): number | undefined {
    const fits = (value: unknown): boolean => typeof value === "number" && value >= 0 && value <= 1;
    return this.#typed(name, "a number from 0 to 1", fits) as number | undefined;
  }

  oneOf<T extends string>(name: string, allowed: readonly T[]): T | undefined {
    const fits = (value: unknown): boolean => allowed.includes(value as T);
    return this.#typed(name, `one of ${allowed.join(", ")}`, fits) as T | undefined;
  }

  strings(name: string): string[] | undefined {
    const fits = (value: unknown): boolean =>
      Array.isArray(value) && value.every((each) => typeof each === "string");
    return this.#typed(name, "a list of strings", fits) as string[] | undefined;
  }

  stringMap(name: string): Record<string, string> | undefined {
    const fits = (value: unknown): boolean =>
      typeof value === "object" &&
      value !== null &&
      Object.values(value).every((each) => typeof each === "string");
    return this.#typed(name, "an object of strings", fits) as Record<string, string> | undefined;
  }

  any(name: string): unknown {
    this.#asked.add(name);
    return this.#value[name];
  }

  object(name: string): JsonReader | undefined {
    const value = this.any(name);
    return value === undefined ? undefined : new JsonReader(value, this.#at(name));
  }

  /** Null, or what `read` makes of the member. */
  nullable<T>(name: string, read: (reader: this) => T | undefined): T | null | undefined {
    return this.any(name) === null ? null : read(this);
  }

  /** The object as it came, for a reader of its own. */
  whole(): Readonly<Record<string, unknown>> {
    return this.#value;
  }

  end(): void {
    const unknown = Object.keys(this.#value).find((name) => !this.#asked.has(name));
    if (unknown !== undefined) throw new ControlError(`${this.#at(unknown)} is not known here`);
  }

  #typed(name: string, what: string, fits: (value: unknown) => boolean): unknown {
    const value = this.any(name);
    if (value !== undefined && !fits(value)) throw new ControlError(`${this.#at(name)} must be ${what}`);
    return value;
  }

  #at(name: string): string {
    return this.#path === "" ? name : `${this.#path}.${name}`;
  }
}

/** The members that were given: an absent one stays absent, as `exactOptionalPropertyTypes` wants it. */
export function given<T extends object>(members: { [Name in keyof T]: T[Name] | undefined }): T {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as T;
}
