// Somebody who decides, in a process of their own: bun approver.ts <url> <checkpoint id>, the approval key in KEY.

import { Waystation } from '../../sdk/src/index.ts'

const [url, id] = process.argv.slice(2) as [string, string]
const approver = new Waystation({ url, key: process.env.KEY })
const { status } = await approver.checkpoints.approve(id, { reason: 'the customer called' })
console.log(status)
