export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** JSON requests to a sandbox's control API. */
export class ControlTransport {
  readonly url: string;

  constructor(controlUrl: string) {
    this.url = controlUrl.replace(/\/$/, "");
  }

  /** Throws where the sandbox refuses, with its reason. */
  async send<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await fetch(`${this.url}/_sandbox${path}`, {
      method,
      ...(body === undefined
        ? {}
        : { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
    });
    const answer: unknown = await response.json();
    if (!response.ok) {
      const reason = (answer as { error?: string }).error ?? response.statusText;
      throw new Error(`sandbox control: ${method} ${path}: ${reason}`);
    }
    return answer as T;
  }
}

export function queryOf(query: Query): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value));
  return search.size === 0 ? "" : `?${search.toString()}`;
}
