import { expect, test } from 'bun:test'
import { declareEvents } from './event.ts'
import { Filter } from './wanted.ts'

declareEvents({ 'schedule.created': { about: 'For tests.', subject: 'schedule', data: {} } })

test.each([
  ['sch_1', null, 'sch_1'],
  ['schedule:sch_1', 'schedule', 'sch_1'],
  ['schedule:eu:42', 'schedule', 'eu:42'],
  ['orders:eu/42', null, 'orders:eu/42'],
  ['schedule:', null, 'schedule:'],
  [':sch_1', null, ':sch_1'],
  ['Schedule:sch_1', null, 'Schedule:sch_1'],
])('the subject %s has the kind %p and the id %s: a kind is one that there is', (subject, kind, id) => {
  const { subject_kind, subject_id } = new Filter({ subject })
  expect([subject_kind, subject_id]).toEqual([kind, id])
})
