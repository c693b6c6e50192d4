// The least that a client takes for an answer of the service, for tests that look at the request alone.

import { type OperationSpec, operations } from '../../sdk/src/types.ts'

/** `members`: of its body, beside the one by which it is known. */
export function leastAnswer(method: string, path: string, members: object = {}): Response {
  const operation = operationAt(method, path.split('?')[0]!)
  if (operation.empty && !operation.has) return new Response(null, { status: 204 })
  const data = { ...(operation.has && { [operation.has]: null }), ...members }
  return Response.json(operation.wrapped ? { success: true, data } : data)
}

/** One with more words of its own comes before one with a parameter in their place. */
function operationAt(method: string, path: string): OperationSpec {
  const words = path.split('/')
  const parameters = (operation: OperationSpec) => operation.path.split('{').length
  const [found] = Object.values<OperationSpec>(operations)
    .filter((operation) => {
      const own = operation.path.split('/')
      const fits = own.every((word, at) => word.startsWith('{') || word === words[at])
      return operation.method === method && own.length === words.length && fits
    })
    .toSorted((a, b) => parameters(a) - parameters(b))
  if (!found) throw new Error(`no operation is at ${method} ${path}`)
  return found
}
