import type { SeedReport } from "./run-seed.js";

/** The end of a story is what explains most; what names the faulty objects explains the rest. */
const LAST_LINES = 40;
/** A statement that only reads and that nothing went wrong with; the whole story has those too. */
const BARE_READ = / db (read|list|count|find|is|has|look)[A-Z]\w*$/;
const MOST_RELATED = 120;
const LONGEST_LINE = 600;

/** For a person: the faults first, then what the seed drew, and the story or its telling parts. */
export function describeReport(report: SeedReport, isWhole = false): string {
  const { seed, faults, setting, story, counts, digest } = report;
  const many = report.payments === undefined ? "" : ` --payments ${String(report.payments)}`;
  const head = `seed ${String(seed)}: ${faults.length === 0 ? "no fault" : `${String(faults.length)} faults`}`;
  const summary = Object.entries(counts)
    .map(([name, count]) => `${name} ${String(Math.round(count * 100) / 100)}`)
    .join(", ");
  return [
    `${head} (${summary}, story ${digest.slice(0, 12)} of ${String(story.length)} lines)`,
    ...faults.map((fault) => `  ${fault}`),
    `  setting ${setting}`,
    ...(faults.length === 0 && !isWhole ? [] : storyOf(faults, story, isWhole)),
    ...(faults.length === 0 ? [] : [`  again: npm run simulate -- --seed ${String(seed)}${many}`]),
  ].join("\n");
}

function storyOf(faults: readonly string[], story: readonly string[], isWhole: boolean): string[] {
  if (isWhole) return story.map(cut);
  const names = namesIn(faults.join("\n"), story);
  const related = story.filter((line) => names.some((name) => mentions(line, name))).slice(-MOST_RELATED);
  return [
    ...(related.length === 0 ? [] : [`  what names ${names.join(", ")}:`, ...related.map(cut)]),
    "  the last steps:",
    ...story
      .filter((line) => !BARE_READ.test(line))
      .slice(-LAST_LINES)
      .map(cut),
  ];
}

/** The objects of the faults, and what the story itself connects with them: an attempt's object, an object's attempt. */
function namesIn(faults: string, story: readonly string[]): string[] {
  const named = new Set(faults.match(/\b(pi|re|dp)_\d+\b|\batt#\d+|\bkey-[\w-]+/g) ?? []);
  for (const line of story) {
    const [, intent, attempt] = /: \S+ (pi_\d+) \((att#\d+)\)/.exec(line) ?? [];
    if (intent === undefined || attempt === undefined) continue;
    if (named.has(intent)) named.add(attempt);
    if (named.has(attempt)) named.add(intent);
  }
  return [...named];
}

function mentions(line: string, name: string): boolean {
  const at = line.indexOf(name);
  return at >= 0 && !/[\w-]/.test(line.charAt(at + name.length));
}

function cut(line: string): string {
  return `    ${line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE)}…` : line}`;
}
