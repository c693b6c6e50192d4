// The operator's command as a program of its own: npm run admin.

import { adminOfProcess } from './admin/process.ts'

process.exitCode = await adminOfProcess(process.argv.slice(2), 'npm run admin --')
