// The request of callers that tests make themselves.

import type { Requested } from '../../src/contract/caller.ts'

export const requested: Requested = { request_id: 'req_of_a_test', workflow_id: null }
