import { defineConfig, globalIgnores } from "eslint/config";
import tseslint from "typescript-eslint";

const PROCESS_ENV = {
  selector: "MemberExpression[object.name='process'][property.name='env']",
  message: "Only src/config.ts reads the environment; take the value from Config.",
};
const PROCESS_ENV_DESTRUCTURED = {
  selector: "VariableDeclarator[init.name='process'] > ObjectPattern > Property[key.name='env']",
  message: "Only src/config.ts reads the environment; take the value from Config.",
};
const PROCESS_ENV_IMPORTED = {
  selector: "ImportDeclaration[source.value=/^(node:)?process$/]",
  message: "Use the global `process`; the environment is read in src/config.ts alone.",
};
const RAW_SQL = {
  selector: "CallExpression[callee.object.name='sql'][callee.property.name='raw']",
  message: "sql.raw puts text into a statement unescaped; use the sql template's parameters.",
};
const SOURCE_RESTRICTIONS = [PROCESS_ENV, PROCESS_ENV_DESTRUCTURED, PROCESS_ENV_IMPORTED, RAW_SQL];

const FUNCTION_LENGTH = { max: 70, skipBlankLines: true, skipComments: true };
const FILE_LENGTH = { max: 300, skipBlankLines: true, skipComments: true };

export default defineConfig(
  globalIgnores(["dist/", "coverage/", ".pawl/", "drizzle/", "**/*.mjs", "**/*.cjs"]),
  {
    files: ["**/*.ts"],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "@typescript-eslint/no-floating-promises": "error",
      "@typescript-eslint/no-misused-promises": "error",
      "@typescript-eslint/switch-exhaustiveness-check": [
        "error",
        { considerDefaultExhaustiveForUnions: false, requireDefaultForNonUnion: false },
      ],
      "@typescript-eslint/consistent-type-imports": "error",
      "@typescript-eslint/consistent-type-exports": "error",
      "@typescript-eslint/return-await": ["error", "in-try-catch"],
      "@typescript-eslint/strict-boolean-expressions": "off",
      // A number in a message is exact here: money is a bigint or an integer, never a float.
      "@typescript-eslint/restrict-template-expressions": [
        "error",
        { allowNumber: true, allowBoolean: true, allowNever: false },
      ],
      "@typescript-eslint/no-confusing-void-expression": [
        "error",
        { ignoreArrowShorthand: true, ignoreVoidReturningFunctions: true },
      ],
      "@typescript-eslint/no-unused-vars": [
        "error",
        { argsIgnorePattern: "^_", varsIgnorePattern: "^_", caughtErrors: "all" },
      ],
      // tsc's noPropertyAccessFromIndexSignature asks for the brackets that this rule would take away.
      "@typescript-eslint/dot-notation": "off",
      // A port's method is async for its callers; not every implementation has something to await.
      "@typescript-eslint/require-await": "off",
      "@typescript-eslint/unified-signatures": "off",
      // It takes a flag that a callback sets during an await for a constant, and asks to drop the check that is needed.
      "@typescript-eslint/no-unnecessary-condition": "off",
      // A query's row type is named by its caller and stands nowhere else.
      "@typescript-eslint/no-unnecessary-type-parameters": "off",
      eqeqeq: ["error", "always"],
      "no-console": "error",
      "no-restricted-syntax": ["error", ...SOURCE_RESTRICTIONS],
      "max-lines": ["error", FILE_LENGTH],
      "max-lines-per-function": ["error", FUNCTION_LENGTH],
    },
  },
  {
    files: ["src/config.ts"],
    rules: { "no-restricted-syntax": ["error", RAW_SQL] },
  },
  {
    // A fault that the sandbox does not treat apart is treated as the others are.
    files: ["src/sandbox/**/*.ts"],
    rules: {
      "@typescript-eslint/switch-exhaustiveness-check": [
        "error",
        { considerDefaultExhaustiveForUnions: true, requireDefaultForNonUnion: false },
      ],
    },
  },
  {
    // What a command prints is its result.
    files: ["src/cli/**/*.ts", "scripts/**/*.ts", "bench/**/*.ts"],
    rules: { "no-console": "off" },
  },
  {
    files: ["test/**/*.ts", "bench/**/*.ts", "scripts/**/*.ts", "*.config.ts"],
    rules: {
      // A describe or test callback is a list of cases, and a test sets the environment of the process it starts.
      "max-lines-per-function": "off",
      "no-restricted-syntax": "off",
      // An assertion that a row is there is what the test is about.
      "@typescript-eslint/no-non-null-assertion": "off",
    },
  },
);
