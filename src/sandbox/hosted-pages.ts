import type { IncomingMessage, ServerResponse } from "node:http";
import type { Customer } from "./customer.js";
import { parseForm } from "./form.js";

const PATH = /^\/_hosted\/three_d_secure\/(pi_[A-Za-z0-9]+)$/;

/** The page a customer is sent to for 3D Secure: two buttons, then back to the return URL. */
export class HostedPages {
  readonly #customer: Customer;

  constructor(customer: Customer) {
    this.#customer = customer;
  }

  handle(request: IncomingMessage, response: ServerResponse, body: string): void {
    const url = new URL(request.url ?? "/", "http://sandbox.invalid");
    const id = PATH.exec(url.pathname)?.[1];
    const secret = url.searchParams.get("client_secret");
    const before = id === undefined ? undefined : this.#customer.realmOf(id)?.paymentIntents.get(id);
    if (id === undefined || before === undefined || before.client_secret !== secret) {
      return page(response, 404, "<h1>No such authentication</h1>");
    }
    if (request.method === "GET") {
      if (before.status !== "requires_action") return page(response, 200, "<h1>Nothing to authenticate</h1>");
      return page(
        response,
        200,
        "<h1>3D Secure (sandbox)</h1>" +
          '<form method="post"><button name="outcome" value="complete">Complete</button> ' +
          '<button name="outcome" value="fail">Fail</button></form>',
      );
    }
    const outcome = parseForm(body)["outcome"];
    if (request.method !== "POST" || (outcome !== "complete" && outcome !== "fail")) {
      return page(response, 400, "<h1>outcome must be complete or fail</h1>");
    }
    const after = this.#customer.authenticate(id, outcome);
    if (after === null) return page(response, 409, "<h1>Nothing to authenticate</h1>");
    const returnUrl = before.next_action?.redirect_to_url?.return_url ?? null;
    if (returnUrl === null) return page(response, 200, `<h1>${after.status}</h1>`);
    const back = new URL(returnUrl);
    back.searchParams.set("payment_intent", id);
    back.searchParams.set("payment_intent_client_secret", secret ?? "");
    back.searchParams.set(
      "redirect_status",
      after.status === "requires_payment_method" ? "failed" : "succeeded",
    );
    response.writeHead(303, { location: back.href });
    response.end();
  }
}

function page(response: ServerResponse, status: number, content: string): void {
  response.writeHead(status, {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": "default-src 'none'",
  });
  response.end(`<!doctype html><title>Pawl sandbox</title>${content}`);
}
