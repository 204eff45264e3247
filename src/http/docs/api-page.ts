import type { OpenApiDocument } from "../openapi.js";
import { escapeHtml, page } from "./html.js";

/** The part of an OpenAPI document that the page shows; the document is our own, so its shape is known. */
interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly description?: string;
  readonly maxLength?: number;
  readonly default?: unknown;
}
interface Operation {
  readonly operationId: string;
  readonly summary?: string;
  readonly description?: string;
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly required?: boolean;
    readonly description?: string;
    readonly schema: Schema;
  }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> };
  readonly responses: Readonly<
    Record<
      string,
      {
        readonly description: string;
        readonly content?: Readonly<Record<string, { readonly schema: Schema }>>;
      }
    >
  >;
}
type Paths = Readonly<Record<string, Readonly<Record<string, Operation>>>>;

/** The API on one page: every call with its parameters, body and answers, then the objects. */
export function apiPage(document: OpenApiDocument): string {
  const paths = (document.paths ?? {}) as unknown as Paths;
  const schemas = (document.components?.schemas ?? {}) as Readonly<Record<string, Schema>>;
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => operationSection(method, path, operation)),
  );
  const objects = Object.entries(schemas).map(
    ([name, schema]) => `<section id="${name}"><h2>${name}</h2>${propertiesTable(schema)}</section>`,
  );
  return page(
    "Pawl API",
    `<h1>Pawl API ${escapeHtml(document.info.version)}</h1>\n<p>${prose(document.info.description ?? "")}</p>\n${[...operations, ...objects].join("\n")}`,
  );
}

function operationSection(method: string, path: string, operation: Operation): string {
  const parameters = (operation.parameters ?? []).map((parameter) => [
    `<code>${escapeHtml(parameter.name)}</code>`,
    `${parameter.in}${parameter.required === true ? ", required" : ""}`,
    typeOf(parameter.schema),
    prose(parameter.description ?? parameter.schema.description ?? ""),
  ]);
  const body = Object.values(operation.requestBody?.content ?? {}).map(
    ({ schema }) => `<p>Body: ${typeOf(schema)}</p>`,
  );
  const answers = Object.entries(operation.responses).map(([status, response]) => [
    status,
    Object.values(response.content ?? {})
      .map(({ schema }) => typeOf(schema))
      .join(", "),
    prose(response.description),
  ]);
  return `<section id="${operation.operationId}">
<h2><code>${method.toUpperCase()} ${escapeHtml(path)}</code></h2>
<p>${prose([operation.summary, operation.description].filter(Boolean).join(". "))}</p>
${table(["Parameter", "In", "Type", ""], parameters)}${body.join("")}
${table(["Status", "Body", ""], answers)}
</section>`;
}

function propertiesTable(schema: Schema): string {
  const rows = Object.entries(schema.properties ?? {}).map(([name, property]) => [
    `<code>${escapeHtml(name)}</code>`,
    schema.required?.includes(name) === true ? "always" : "",
    typeOf(property),
    prose(property.description ?? ""),
  ]);
  return table(["Field", "", "Type", ""], rows);
}

function typeOf(schema: Schema): string {
  if (schema.$ref !== undefined) {
    const name = escapeHtml(schema.$ref.slice(schema.$ref.lastIndexOf("/") + 1));
    return `<a href="#${name}">${name}</a>`;
  }
  if (schema.items !== undefined) return `list of ${typeOf(schema.items)}`;
  if (schema.enum !== undefined)
    return schema.enum.map((value) => `<code>${escapeHtml(String(value))}</code>`).join(" | ");
  const data = schema.properties?.["data"];
  if (data !== undefined) return `page: ${typeOf(data)}`;
  const type = escapeHtml([schema.type ?? "object"].flat().join(" or "));
  const length = schema.maxLength === undefined ? "" : `, at most ${schema.maxLength} characters`;
  const fallback =
    schema.default === undefined
      ? ""
      : `, default <code>${escapeHtml(JSON.stringify(schema.default))}</code>`;
  return `${type}${length}${fallback}`;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return "";
  const cells = (tag: string, row: readonly string[]) =>
    `<tr>${row.map((cell) => `<${tag}>${cell}</${tag}>`).join("")}</tr>`;
  return `<div class="scroll"><table>${cells("th", head)}${rows.map((row) => cells("td", row)).join("\n")}</table></div>`;
}

/** Escaped text with the two marks that our descriptions use: `code` and [text](/path). */
function prose(text: string): string {
  return escapeHtml(text)
    .replace(/`([^`]+)`/g, "<code>$1</code>")
    .replace(/\[([^\]]+)\]\((\/[A-Za-z0-9/_-]+)\)/g, '<a href="$2">$1</a>');
}
