import {
  ARRIVALS,
  EFFECTS,
  FAULT_TYPES,
  type Fault,
  type FaultMatch,
  type FaultRuleInput,
  type FaultType,
  isCallPattern,
} from "./fault-rules.js";
import { ControlError, given, JsonReader } from "./json-shape.js";

/** A rule from the control API or the command line. Throws ControlError naming the member that is wrong. */
export function readFaultRule(json: unknown): FaultRuleInput {
  const reader = new JsonReader(json);
  const match = reader.object("match");
  const faultReader = reader.object("fault");
  if (faultReader === undefined) throw new ControlError("fault is missing");
  const rule = given<FaultRuleInput>({
    match: match === undefined ? undefined : readMatch(match),
    skip: reader.integer("skip", 0),
    times: reader.nullable("times", (each) => each.integer("times", 1)),
    probability: reader.fraction("probability"),
    latency_ms: reader.integer("latency_ms", 0),
    fault: readFault(faultReader),
  });
  reader.end();
  return rule;
}

function readMatch(reader: JsonReader): FaultMatch {
  const call = Array.isArray(reader.any("call")) ? reader.strings("call") : reader.string("call");
  const unknown = (typeof call === "string" ? [call] : (call ?? [])).find((name) => !isCallPattern(name));
  if (unknown !== undefined) throw new ControlError(`match.call: there is no call ${unknown}`);
  const pattern = reader.string("idempotency_key_pattern");
  if (pattern !== undefined && !isPattern(pattern)) {
    throw new ControlError("match.idempotency_key_pattern is no regular expression");
  }
  const match = given<FaultMatch>({
    call,
    idempotency_key: reader.string("idempotency_key"),
    idempotency_key_pattern: pattern,
    object_id: reader.string("object_id"),
    metadata: reader.stringMap("metadata"),
    account: reader.string("account"),
  });
  reader.end();
  return match;
}

function readFault(reader: JsonReader): FaultRuleInput["fault"] {
  const type = reader.oneOf("type", FAULT_TYPES);
  if (type === undefined) throw new ControlError(`fault.type is missing: one of ${FAULT_TYPES.join(", ")}`);
  const status = reader.integer("status", 200);
  const fault = given<{ type: FaultType } & Partial<Fault>>({
    type,
    effect: reader.oneOf("effect", EFFECTS),
    arrival: reader.oneOf("arrival", ARRIVALS),
    effect_after_ms: reader.nullable("effect_after_ms", (each) => each.integer("effect_after_ms", 0)),
    hang_ms: reader.nullable("hang_ms", (each) => each.integer("hang_ms", 0)),
    interval_ms: reader.integer("interval_ms", 1),
    status,
    code: reader.nullable("code", (each) => each.string("code")),
    error_type: reader.nullable("error_type", (each) => each.string("error_type")),
    message: reader.nullable("message", (each) => each.string("message")),
    retry_after: reader.nullable("retry_after", (each) => each.integer("retry_after", 0)),
  });
  reader.end();
  if (status !== undefined && status > 599) throw new ControlError("fault.status must be at most 599");
  refuseNonsense(fault);
  return fault;
}

/** Combinations that would silently do something else than they say. */
function refuseNonsense(fault: FaultRuleInput["fault"]): void {
  const { type, effect } = fault;
  const isError = type === "error" || type === "stored_error";
  if (isError && fault.status !== undefined && fault.status < 400) {
    throw new ControlError(`fault.status of an ${type} must be from 400`);
  }
  if ((type === "slow" || type === "drip") && effect !== undefined && effect !== "applied") {
    throw new ControlError(`fault.effect of ${type} can only be applied`);
  }
  if (effect !== "later" && (fault.arrival !== undefined || fault.effect_after_ms !== undefined)) {
    throw new ControlError("fault.arrival and fault.effect_after_ms go with effect later only");
  }
  if (type === "stored_error" && fault.arrival === "in_network") {
    throw new ControlError("an error can only be stored for a request that has arrived");
  }
  if (type === "hang" && effect === "later" && fault.hang_ms !== undefined) {
    throw new ControlError(
      "a hang with a later effect answers when the effect is there: use effect_after_ms",
    );
  }
  if (type !== "hang" && fault.hang_ms !== undefined)
    throw new ControlError("fault.hang_ms goes with hang only");
}

function isPattern(text: string): boolean {
  try {
    new RegExp(text);
    return true;
  } catch {
    return false;
  }
}
