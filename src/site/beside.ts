// The files that pages of docs/ link to: images and examples. Imported at the first request for one of them.

import approve from '../../docs/images/approve.png' with { type: 'file' }
import concepts from '../../docs/images/concepts.svg' with { type: 'file' }
import overview from '../../docs/images/overview.png' with { type: 'file' }
import performance_chart from '../../docs/images/performance.svg' with { type: 'file' }
import workflow from '../../docs/images/workflow.png' with { type: 'file' }

/** Images by the name in docs/images/. */
const images: Readonly<Record<string, string>> = {
  'approve.png': approve,
  'concepts.svg': concepts,
  'overview.png': overview,
  'performance.svg': performance_chart,
  'workflow.png': workflow,
}

/** Examples as text, by the name in examples/. The type checker takes some of them for modules. */
const examples: Readonly<Record<string, () => Promise<unknown>>> = {
  'agent.py': () => import('../../examples/agent.py', { with: { type: 'text' } }),
  'agent.sh': () => import('../../examples/agent.sh', { with: { type: 'text' } }),
  'agent.ts': () => import('../../examples/agent.ts', { with: { type: 'text' } }),
  'callbacks.ts': () => import('../../examples/callbacks.ts', { with: { type: 'text' } }),
  'first-steps.sh': () => import('../../examples/first-steps.sh', { with: { type: 'text' } }),
  'inbox.ts': () => import('../../examples/inbox.ts', { with: { type: 'text' } }),
  'mcp.json': () => import('../../examples/mcp.json', { with: { type: 'text' } }),
  'recipes/phone.ts': () => import('../../examples/recipes/phone.ts', { with: { type: 'text' } }),
  'recipes/rate-limit.ts': () => import('../../examples/recipes/rate-limit.ts', { with: { type: 'text' } }),
  'recipes/retry.ts': () => import('../../examples/recipes/retry.ts', { with: { type: 'text' } }),
  'recipes/ten-workers.ts': () => import('../../examples/recipes/ten-workers.ts', { with: { type: 'text' } }),
  'recipes/webhook.ts': () => import('../../examples/recipes/webhook.ts', { with: { type: 'text' } }),
  'refund.ts': () => import('../../examples/refund.ts', { with: { type: 'text' } }),
  'tutorial/agent.ts': () => import('../../examples/tutorial/agent.ts', { with: { type: 'text' } }),
  'tutorial/receiver.ts': () => import('../../examples/tutorial/receiver.ts', { with: { type: 'text' } }),
  'verify_bundle.py': () => import('../../examples/verify_bundle.py', { with: { type: 'text' } }),
}

/** Reads the file at a path of the service, or answers null. */
export function fileBeside(path: string): (() => Promise<string | Uint8Array<ArrayBuffer>>) | null {
  const [, folder, name] = /^\/(docs\/images|examples)\/([\w./-]+)$/.exec(path) ?? []
  if (folder === 'examples' && Object.hasOwn(examples, name!)) return () => textOf(examples[name!]!)
  if (folder === 'docs/images' && Object.hasOwn(images, name!)) return () => Bun.file(images[name!]!).bytes()
  return null
}

async function textOf(load: () => Promise<unknown>): Promise<string> {
  return ((await load()) as { default: string }).default
}
