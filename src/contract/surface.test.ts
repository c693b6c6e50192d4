import { describe, expect, test } from 'bun:test'
import { ApiError } from '../base/errors.ts'
import { dataText, errorText, isApi, isWrapped } from './surface.ts'

describe('a path', () => {
  test.each([
    ['/v1/kv/:namespace', false, false],
    ['/livez', false, false],
    ['/', false, false],
    ['/apis/x', false, false],
    ['/api', false, false],
    ['/api/webhook', true, true],
    ['/hook/:token', true, false],
    ['/hook/:token/*', true, false],
    ['/hooks/x', false, false],
  ])('%s: errors in an envelope of /api %p, data too %p', (path, wrapped, api) => {
    expect([isWrapped(path), isApi(path)]).toEqual([wrapped, api])
  })
})

describe('what is answered', () => {
  test.each([
    ['/v1/agents', 200, '{"a":1e400}'],
    ['/hook/:token', 200, '{"a":1e400}'],
    ['/api/webhook', 201, '{"success":true,"data":{"a":1e400}}'],
    ['/api/rate-limit/check', 429, '{"success":false,"data":{"a":1e400}}'],
  ])('by %s with %d lies in the envelope of its surface, its text as it is', (path, status, text) => {
    expect(dataText(path, status, '{"a":1e400}')).toBe(text)
  })

  const message = 'The body is not valid JSON in UTF-8.'
  const bare = `"error":{"code":"INVALID_JSON","message":"${message}","request_id":"req_1"}`
  test.each([
    [null, `{${bare}}`],
    ['/v1/agents', `{${bare}}`],
    ['/api/webhook', `{"success":false,${bare}}`],
    ['/hook/:token', `{"success":false,${bare}}`],
  ])('when %s fails is the envelope of its surface', (path, text) => {
    expect(errorText(path, new ApiError('INVALID_JSON'), 'req_1')).toBe(text)
  })

  test('names details between message and request id', () => {
    const details = { quota: 'inboxes', used: 3, limit: 3 }
    const { error } = JSON.parse(
      errorText('/api/webhook', new ApiError('QUOTA_EXCEEDED', { details }), 'req_1'),
    )
    expect(Object.keys(error)).toEqual(['code', 'message', 'details', 'request_id'])
    expect(error.details).toEqual(details)
  })
})
