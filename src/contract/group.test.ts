import { describe, expect, test } from 'bun:test'
import { ApiError } from '../base/errors.ts'
import { routes } from '../features.ts'
import { api, dataText, errorText, type Group, hook, v1 } from './group.ts'

/** By the first part of a path; probes and the document have the plain one. */
const by_path: Record<string, Group> = { v1, api, hook }

describe('a route', () => {
  test.each(routes.map(({ route }) => [`${route.method} ${route.path}`, route] as const))(
    '%s has the group that its path says',
    (_, { path, group }) => {
      expect(group).toBe(by_path[path.split('/')[1]!] ?? v1)
    },
  )

  test('of each group is there, so that the paths are judged', () => {
    for (const first of Object.keys(by_path))
      expect(routes.filter(({ route }) => route.path.startsWith(`/${first}/`)).length).toBeGreaterThan(3)
  })
})

describe('a group', () => {
  test.each([
    ['v1', v1, false, false],
    ['api', api, true, true],
    ['hook', hook, true, false],
  ])('%s has the envelopes of this table', (name, group, errors, data) => {
    expect(group.name as string).toBe(name)
    expect([group.marks_errors, group.wraps_data]).toEqual([errors, data])
  })
})

describe('what is answered', () => {
  test.each([
    ['v1', v1, 200, '{"a":1e400}'],
    ['hook', hook, 200, '{"a":1e400}'],
    ['api', api, 201, '{"success":true,"data":{"a":1e400}}'],
    ['api', api, 429, '{"success":false,"data":{"a":1e400}}'],
  ])('by %s lies in the envelope of its group, its text as it is', (_, group, status, text) => {
    expect(dataText(group, status, '{"a":1e400}')).toBe(text)
  })

  const message = 'The body is not valid JSON in UTF-8.'
  const bare = `"error":{"code":"INVALID_JSON","message":"${message}","request_id":"req_1"}`
  test.each([
    ['nothing', null, `{${bare}}`],
    ['v1', v1, `{${bare}}`],
    ['api', api, `{"success":false,${bare}}`],
    ['hook', hook, `{"success":false,${bare}}`],
  ])('when %s fails is the envelope of its group', (_, group, text) => {
    expect(errorText(group, new ApiError('INVALID_JSON'), 'req_1')).toBe(text)
  })

  test('names details between message and request id', () => {
    const details = { quota: 'inboxes', used: 3, limit: 3 }
    const { error } = JSON.parse(errorText(api, new ApiError('QUOTA_EXCEEDED', { details }), 'req_1'))
    expect(Object.keys(error)).toEqual(['code', 'message', 'details', 'request_id'])
    expect(error.details).toEqual(details)
  })
})
