import type Stripe from "stripe";
import { invalidRequest } from "./errors.js";

type Matches = (paymentIntent: Stripe.PaymentIntent) => boolean;

// One clause: [-]field[["key"]] operator value (docs.stripe.com/search#search-query-language).
const CLAUSE =
  /^\s*(-?)([a-z_]+)(?:\[(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')\])?\s*(:|~|>=|<=|>|<)\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([A-Za-z0-9_.-]+))/;
const JOIN = /^\s+(AND|OR)\s+|^\s+/i;

const TEXT_FIELDS = ["status", "currency", "customer"] as const;
const NUMBER_FIELDS = ["amount", "created"] as const;

/** A predicate for one search query. Clauses are joined by AND or by OR, never mixed. Throws 400. */
export function parseSearch(query: string): Matches {
  const clauses: Matches[] = [];
  let joint: "AND" | "OR" | null = null;
  let rest = query;
  for (;;) {
    const found = CLAUSE.exec(rest);
    if (found === null) throw unreadable(query);
    clauses.push(clauseOf(found, query));
    rest = rest.slice(found[0].length);
    if (rest.trim() === "") break;
    const join = JOIN.exec(rest);
    if (join === null) throw unreadable(query);
    const word = join[1]?.toUpperCase() === "OR" ? "OR" : "AND";
    if (joint !== null && joint !== word) throw unreadable(query);
    joint = word;
    rest = rest.slice(join[0].length);
  }
  return joint === "OR"
    ? (object) => clauses.some((matches) => matches(object))
    : (object) => clauses.every((matches) => matches(object));
}

function clauseOf(found: RegExpExecArray, query: string): Matches {
  const [, minus, field = "", double, single, operator = ":", doubleValue, singleValue, bare] = found;
  const value = unescaped(doubleValue ?? singleValue ?? bare ?? "");
  const key = double ?? single;
  const positive = predicateOf(field, key === undefined ? null : unescaped(key), operator, value);
  if (positive === null) throw unreadable(query);
  return minus === "-" ? (object) => !positive(object) : positive;
}

function predicateOf(field: string, key: string | null, operator: string, value: string): Matches | null {
  if (field === "metadata" && key !== null) {
    if (operator === ":") return (object) => object.metadata[key]?.toLowerCase() === value.toLowerCase();
    if (operator === "~")
      return (object) => object.metadata[key]?.toLowerCase().includes(value.toLowerCase()) === true;
    return null;
  }
  const text = TEXT_FIELDS.find((each) => each === field);
  if (text !== undefined && key === null && operator === ":") {
    return (object) => textOf(object[text]).toLowerCase() === value.toLowerCase();
  }
  const numeric = NUMBER_FIELDS.find((each) => each === field);
  if (numeric === undefined || key !== null || !/^\d+$/.test(value)) return null;
  const bound = Number(value);
  switch (operator) {
    case ":":
      return (object) => object[numeric] === bound;
    case ">":
      return (object) => object[numeric] > bound;
    case ">=":
      return (object) => object[numeric] >= bound;
    case "<":
      return (object) => object[numeric] < bound;
    case "<=":
      return (object) => object[numeric] <= bound;
    default:
      return null;
  }
}

function textOf(value: string | { id: string } | null): string {
  return value === null ? "" : typeof value === "string" ? value : value.id;
}

function unescaped(text: string): string {
  return text.replace(/\\(.)/g, "$1");
}

function unreadable(query: string) {
  return invalidRequest(
    `We were unable to parse your search query: ${query}. See https://stripe.com/docs/search for the query language.`,
    undefined,
    "query",
  );
}
