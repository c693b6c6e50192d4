// The URL of a PostgreSQL, as the options of Bun.SQL.

/**
 * For Bun.SQL alone PGDATABASE of the environment comes before the database that the URL names: another one would be served,
 * marked as restored or released. Of PGHOST, PGPORT, PGUSER and PGPASSWORD it takes what the URL leaves out, as every program does.
 */
export function addressOf(url: string): { url: string; database?: string } {
  const database = decodeURIComponent(new URL(url).pathname.slice(1))
  return database === '' ? { url } : { url, database }
}
