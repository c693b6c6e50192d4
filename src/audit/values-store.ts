// The texts that entries have in a field. Each is one look-up in the field's index, however many entries have it.

import { beginOf, type TextRange } from '../base/text-range.ts'
import { type Reader, type Statement, sql } from '../db/db.ts'
import { type FilterName, filter_names, indexOf } from './filter-store.ts'

const VALUES = Object.fromEntries(filter_names.map((name) => [name, valuesStatement(name)])) as Record<
  FilterName,
  Statement<{ value: string }>
>

function valuesStatement(name: FilterName) {
  return sql<{ value: string }>(
    `audit.values_${name}`,
    `with recursive ${textsOf(name)} select value from texts where value is not null`,
  )
}

/** A table `texts` with the field's next `:values_max` texts from `:first` on; null after the last. */
export function textsOf(name: FilterName): string {
  const next = (from: string) => `(select ${name} from audit_entries {by ${indexOf(name)}}
         where tenant_id = :tenant_id and ${name} is not null and ${name} ${from}
         order by tenant_id, ${name}, seq limit 1)`
  return `texts (value, place) as
       (select ${next('>= :first')}, 1
         union all
        select ${next('> texts.value')}, place + 1 from texts where value is not null and place < :values_max)`
}

/** The next texts of this field that begin with the prefix, in bytewise order, `values_max` at most. */
export async function valuesOf(
  q: Reader,
  tenant_id: string,
  name: FilterName,
  range: TextRange,
  values_max: number,
): Promise<string[]> {
  const rows = await q.all(VALUES[name], { tenant_id, first: beginOf(range), values_max })
  return rows.map(({ value }) => value).filter((value) => value.startsWith(range.prefix))
}
