export { SandboxControl } from "./control-client.js";
export { readFaultRule } from "./fault-input.js";
export type { Fault, FaultRuleInput } from "./fault-rules.js";
export type { HeldSelector } from "./held-requests.js";
export { ControlError } from "./json-shape.js";
export type { PaymentIntentRecord } from "./objects.js";
export { CALL_NAMES } from "./operation.js";
export type { LoggedRequest, RequestFilter } from "./request-log.js";
export { type Sandbox, type SandboxOptions, startSandbox } from "./sandbox.js";
