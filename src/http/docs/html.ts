const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character);
}

/** A whole page around `body`, which is HTML already. Its only further request is the style sheet beside it. */
export function page(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<link rel="stylesheet" href="/docs/style.css">
</head>
<body>
<nav><a href="/docs">Pawl API</a> · <a href="/docs/errors">Errors</a> · <a href="/openapi.json">openapi.json</a></nav>
<main>
${body}
</main>
</body>
</html>
`;
}

export const STYLE_SHEET = `:root { color-scheme: light dark; --line: #8884; --soft: #8882; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem 1.25rem 4rem; }
nav { padding: .5rem 0 1rem; border-bottom: 1px solid var(--line); }
section { border-bottom: 1px solid var(--line); padding: 1rem 0; }
h2 code { font-size: 1.05em; }
code, pre { font-family: ui-monospace, monospace; font-size: .9em; background: var(--soft); border-radius: 3px; }
code { padding: .1em .3em; }
pre { padding: .75rem; overflow-x: auto; }
pre code { padding: 0; background: none; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem .35rem 0; border-top: 1px solid var(--line); }
`;
