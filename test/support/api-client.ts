import { randomBytes } from "node:crypto";

/** A payment document, as far as tests look into it. */
export interface PaymentDocument {
  readonly id: string;
  readonly status: string;
  readonly amount: number;
  readonly currency: string;
  readonly amount_captured: number;
  readonly provider_payment_id: string | null;
  readonly failure: {
    readonly code: string;
    readonly decline_code: string | null;
    readonly retry: string;
  } | null;
  readonly resolution: { readonly state: string; readonly reason: string } | null;
  readonly created_at: string;
  readonly updated_at: string;
  readonly [member: string]: unknown;
}

/** A problem, a list or a single object, whichever came. */
export interface AnyDocument extends Partial<PaymentDocument> {
  readonly code?: string;
  readonly request_id?: string;
  readonly payment?: PaymentDocument;
  readonly errors?: readonly { readonly pointer: string; readonly detail: string }[];
  readonly data?: readonly TimelineDocument[];
  readonly [member: string]: unknown;
}

export interface TimelineDocument {
  readonly id: string;
  readonly object: string;
  readonly kind: string;
  readonly from: string | null;
  readonly to: string | null;
  readonly attempt_id: string | null;
  readonly outcome: string | null;
  readonly call: string | null;
  readonly fence: number | null;
}

export interface ApiAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: AnyDocument;
}

export interface PayOptions {
  readonly key?: string;
  readonly prefer?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** A payment that every provider in test mode accepts at once. */
export const VISA = { amount: 4200, currency: "usd", payment_method: "pm_card_visa" } as const;
export const DECLINED = { ...VISA, payment_method: "pm_card_visa_chargeDeclined" } as const;

export function newKey(): string {
  return randomBytes(12).toString("hex");
}

/** The HTTP API as a client sees it. */
export class ApiClient {
  constructor(
    readonly url: string,
    readonly secret: string | null,
  ) {}

  /** The same caller at another process. */
  at(url: string): ApiClient {
    return new ApiClient(url, this.secret);
  }

  pay(body: object | string = VISA, options: PayOptions = {}): Promise<ApiAnswer> {
    return this.request("POST", "/v1/payments", {
      body: typeof body === "string" ? body : JSON.stringify(body),
      headers: {
        "Content-Type": "application/json",
        "Idempotency-Key": options.key ?? newKey(),
        ...(options.prefer === undefined ? {} : { Prefer: options.prefer }),
        ...options.headers,
      },
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    });
  }

  get(path: string): Promise<ApiAnswer> {
    return this.request("GET", path, {});
  }

  payment(id: string): Promise<PaymentDocument> {
    return this.get(`/v1/payments/${id}`).then((answer) => {
      if (answer.status !== 200) throw new Error(`GET of ${id}: ${answer.status} ${answer.text}`);
      return answer.json as PaymentDocument;
    });
  }

  async timeline(id: string): Promise<readonly TimelineDocument[]> {
    return (await this.get(`/v1/payments/${id}/timeline?limit=100`)).json.data ?? [];
  }

  async request(method: string, path: string, init: RequestInit): Promise<ApiAnswer> {
    const headers = new Headers(init.headers);
    if (this.secret !== null) headers.set("Authorization", `Bearer ${this.secret}`);
    const response = await fetch(`${this.url}${path}`, { ...init, method, headers });
    const text = await response.text();
    const isJson = response.headers.get("Content-Type")?.includes("json") === true && text !== "";
    const json = isJson ? (JSON.parse(text) as AnyDocument) : {};
    return { status: response.status, headers: response.headers, text, json };
  }
}
