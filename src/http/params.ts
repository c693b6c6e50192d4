// Path parameters, and the path of a request.

import { ApiError } from '../base/errors.ts'
import type { Param, Route } from '../contract/route.ts'

/** Name to value. */
export type Params = Record<string, string>

export type ParamList = [name: string, param: Param][]

/** Bun turns a bad escape into U+FFFD; where U+FFFD appears, the raw segments show whether the client sent it. */
export function readParams(
  list: ParamList,
  request: { params: object; url: string },
): Record<string, string> {
  const raw = request.params as Record<string, string>
  const params: Record<string, string> = {}
  const issues: { path: string; message: string }[] = []
  for (const [name, param] of list) {
    const decoded = raw[name]!
    const value = decoded.includes('\ufffd') && !isRealText(decoded, request.url) ? null : param.read(decoded)
    if (value !== null) params[name] = value
    else if (param.message === '') params[name] = param.read('')!
    else issues.push({ path: `path.${name}`, message: param.message })
  }
  if (issues.length > 0) throw new ApiError('VALIDATION_FAILED', { details: { issues } })
  return params
}

function isRealText(decoded: string, url: string): boolean {
  return pathSegments(url).some((segment) => {
    try {
      return decodeURIComponent(segment) === decoded
    } catch {
      return false
    }
  })
}

/** The path as the router saw it: cursors and idempotency keys are bound to it. */
export function pathOf(route: Route, params: Record<string, string>): string {
  return route.path.includes(':')
    ? route.path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name]!))
    : route.path
}

/** The parameters of a path of this pattern, decoded as Bun's router does. */
export function paramsIn(pattern: readonly string[], url: string): Record<string, string> {
  const path = pathSegments(url)
  const named = pattern.flatMap((segment, i): [string, string][] =>
    segment.startsWith(':') ? [[segment.slice(1), decoded(path[i]!)]] : [],
  )
  return Object.fromEntries(named)
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return '\ufffd'
  }
}

/** The path of an absolute URL, or of a bare path, which Bun passes for a request without a usable Host. */
export function pathSegments(url: string): string[] {
  const path = url.replace(/^[a-z]+:\/\/[^/]*/, '').split('?', 1)[0]!
  return path.split('/')
}
