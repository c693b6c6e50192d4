// The planner's statistics of a large database, kept as statements that give them to a small one (PostgreSQL 18).

import { join } from 'node:path'
import type { SQL } from 'bun'

/** Written by `npm run plans -- postgres --statistics`. */
export const statistics_file = join(import.meta.dir, 'plan-statistics.sql')

// Not the pages: the planner counts those of the file, and from both it takes how many rows a page has.
const RELATIONS = `
  select format('select pg_restore_relation_stats(''schemaname'', ''public'', ''relname'', %L, ''reltuples'', %s::real)',
    relname, reltuples) as text
    from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'i') order by relname`

const ATTRIBUTES = `
  select format('select pg_restore_attribute_stats(''schemaname'', ''public'', ''relname'', %L, ''attname'', %L, ''inherited'', false, ''null_frac'', %s::real, ''avg_width'', %s::integer, ''n_distinct'', %s::real',
      tablename, attname, null_frac, avg_width, n_distinct)
    || case when most_common_vals is null then ''
       else format(', ''most_common_vals'', %L::text, ''most_common_freqs'', %L::real[]', most_common_vals::text, most_common_freqs::text) end
    || case when histogram_bounds is null then '' else format(', ''histogram_bounds'', %L::text', histogram_bounds::text) end
    || case when correlation is null then '' else format(', ''correlation'', %s::real', correlation) end || ')' as text
    from pg_stats where schemaname = 'public' order by tablename, attname`

export async function statisticsOf(connection: SQL): Promise<string> {
  const rows = [...(await connection.unsafe(RELATIONS)), ...(await connection.unsafe(ATTRIBUTES))] as {
    text: string
  }[]
  return `-- Written by npm run plans -- postgres --statistics.\n${rows.map(({ text }) => `${text};`).join('\n')}\n`
}
