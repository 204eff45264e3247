import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { compileFunction } from "node:vm";
import { build } from "vite";
import { type Rules, rulesOf } from "./model/rules.js";
import * as shipped from "./shipped.js";

const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** A piece of the sources replaced. `find` must stand there exactly once. */
export interface Patch {
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

export interface Code {
  readonly shipped: typeof shipped;
  readonly rules: Rules;
}

function read(file: string): string {
  return readFileSync(join(ROOT, file), "utf8");
}

/** The code as it is. */
export function theShippedCode(): Code {
  return { shipped, rules: rulesOf(read, read) };
}

/**
 * The code with a rule taken out: built in memory from patched sources, the checkout is not touched. Throws where a
 * patch no longer fits.
 */
export async function thePatchedCode(patches: readonly Patch[]): Promise<Code> {
  const texts = new Map<string, string>();
  for (const { file, find, replace } of patches) {
    const text = texts.get(file) ?? read(file);
    const places = text.split(find).length - 1;
    if (places !== 1) throw new Error(`${file} holds the text to be replaced ${places} times: ${find}`);
    texts.set(
      file,
      text.replace(find, () => replace),
    );
  }
  const patchedText = (file: string) => texts.get(file) ?? read(file);
  return { shipped: await bundle(texts), rules: rulesOf(patchedText, read) };
}

async function bundle(texts: ReadonlyMap<string, string>): Promise<typeof shipped> {
  const byPath = new Map([...texts].map(([file, text]) => [join(ROOT, file), text]));
  const output = await build({
    root: ROOT,
    configFile: false,
    logLevel: "silent",
    build: {
      ssr: join(ROOT, "test/explore/shipped.ts"),
      write: false,
      minify: false,
      rolldownOptions: { output: { format: "cjs" } },
    },
    plugins: [{ name: "patches", enforce: "pre", load: (id) => byPath.get(id) ?? null }],
  });
  const first = Array.isArray(output) ? output[0] : output;
  if (first === undefined || !("output" in first)) throw new Error("vite built nothing");
  const module = { exports: {} };
  // Our own source, patched: it runs as it would from a file, and imports what the checkout has.
  const run = compileFunction(first.output[0].code, ["require", "module", "exports"]) as (
    require: NodeJS.Require,
    module: { exports: object },
    exports: object,
  ) => void;
  run(createRequire(import.meta.url), module, module.exports);
  return module.exports as typeof shipped;
}
