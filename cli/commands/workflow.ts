// waystation workflow show: the whole line of one workflow.

import type { JournalEvent, WorkflowTimeline } from '../../sdk/src/index.ts'
import type { Override } from '../spec.ts'
import { shellWord } from '../text.ts'

const columns = ['seq', 'at', 'type', 'subject.id', 'actor', 'data']
const events_a_page = 200
/** Of one command; a longer line goes on with --after. */
const events_max = 2_000

export const workflowShow: Override = {
  async run(cli, { workflow_id, after }) {
    const { workflows } = cli.client()
    const items: JournalEvent[] = []
    let page: WorkflowTimeline
    let next: number | undefined = after
    do {
      page = await workflows.get(workflow_id, { after: next, limit: events_a_page })
      next = page.next_after
      items.push(...page.items)
    } while (page.more && items.length < events_max)
    if (cli.out.json) return cli.out.value({ ...page, items })
    cli.out.table(items, columns)
    const { events, waiting, failing, more, next_after } = page
    cli.out.note(`${workflow_id}: ${events} events, ${waiting} waiting, ${failing} failed.`)
    if (!more) return
    const id = `${workflow_id.startsWith('-') ? '-- ' : ''}${shellWord(workflow_id)}`
    cli.out.note(`There are more: waystation workflow show --after ${next_after} `, id)
  },
}
