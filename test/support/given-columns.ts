import type postgres from "postgres";

/** What an insert may name of a table of Pawl's, as SQL: a column that the database makes by itself is given by nobody. */
export async function givenColumns(sql: postgres.ISql, table: string): Promise<string> {
  const [row] = await sql<{ names: string }[]>`
    select string_agg(quote_ident(attname), ', ' order by attnum) as names from pg_attribute
     where attrelid = ${`public.${table}`}::text::regclass and attnum > 0 and not attisdropped and attgenerated = ''`;
  if (row === undefined) throw new Error(`no table ${table}`);
  return row.names;
}
