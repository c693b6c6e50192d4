// Readiness as a figure: of several processes, the service is ready while each is.

import { type Figure, gauge, value } from './figure.ts'

export function readyFigure(is_ready: boolean): Figure {
  return gauge(
    'waystation_ready',
    '1 while the service is ready for requests.',
    value(is_ready ? 1 : 0),
    'min',
  )
}
