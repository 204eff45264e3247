import type { Context } from "hono";
import { ControlError, JsonReader } from "./json-shape.js";

/** The body as a JSON object; an empty body is an empty object. Throws ControlError. */
export async function readBody(c: Context): Promise<JsonReader> {
  const text = await c.req.text();
  let value: unknown;
  try {
    value = text === "" ? {} : JSON.parse(text);
  } catch {
    throw new ControlError("the body is no JSON");
  }
  return new JsonReader(value);
}
