// The two surfaces of the API: /v1 answers plain objects, /api and /hook wrap errors, and /api its data as well.

import type { ApiError } from '../base/errors.ts'

/** Whether answers of this path are `{"success": …}`. */
export function isWrapped(path: string): boolean {
  return path.startsWith('/api/') || path.startsWith('/hook/')
}

/** Paths whose data is wrapped, too, and whose calls a plan counts by the month. */
export function isApi(path: string): boolean {
  return path.startsWith('/api/')
}

/** The body of a success, or of an answer with data that is none, such as a blocked rate check. `text` is JSON. */
export function dataText(path: string, status: number, text: string): string {
  return isApi(path) ? `{"success":${status < 400},"data":${text}}` : text
}

/** The error envelope of this path. */
export function errorText(
  path: string | null,
  { code, message, details }: ApiError,
  request_id: string,
): string {
  const error = details ? { code, message, details, request_id } : { code, message, request_id }
  return JSON.stringify(path !== null && isWrapped(path) ? { success: false, error } : { error })
}
