// Requests: by route and status, and how long they took.

import type { RequestMeasures } from '../http/measures.ts'
import { counter, type Figure, histogram } from './figure.ts'

export function requestFigures({ routes, shed }: RequestMeasures): Figure[] {
  const asked = routes.filter(({ by_status }) => by_status.size > 0)
  return [
    counter(
      'waystation_http_requests_total',
      'Requests that were answered, by method, pattern of the route and status.',
      asked.flatMap(({ method, route, by_status }) =>
        [...by_status].map(([status, { value }]) => ({
          labels: { method, route, status: String(status) },
          value,
        })),
      ),
    ),
    histogram(
      'waystation_http_request_duration_seconds',
      'Seconds from a request to its answer, without requests that wait because they ask to.',
      asked
        .filter(({ seconds }) => seconds.count > 0)
        .map(({ method, route, seconds }) => ({ labels: { method, route }, measure: seconds })),
    ),
    counter(
      'waystation_requests_shed_total',
      'Requests that were refused with 503 or 507 for lack of room, by what was short.',
      [...shed].map(([reason, { value }]) => ({ labels: { reason }, value })),
    ),
  ]
}
