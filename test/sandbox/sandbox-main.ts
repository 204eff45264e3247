import { sandboxCommand } from "../../src/cli/sandbox-command.js";

// `pawl sandbox` alone, without the modules of the other commands.
await sandboxCommand().parseAsync();
