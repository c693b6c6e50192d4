#!/usr/bin/env node
// `npx waystation-service`: `waystation serve`, with its options.

process.argv.splice(2, 0, 'serve')
await import('./waystation.mjs')
