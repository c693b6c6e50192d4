// nginx with a constant answer: the least that a request can cost, as one of the peers.

import { nginx_binary, startNginx } from '../nginx.ts'
import { type Peer, versionOf } from './peer.ts'

export const nginx: Peer = {
  name: 'nginx',
  how: 'one worker that answers a constant of 150 bytes, for the CPU time of a request alone',
  slow_disk: false,
  async available() {
    if (!nginx_binary) return { missing: 'nginx is not installed' }
    return { version: `nginx ${versionOf([nginx_binary, '-v'], /nginx\/(\S+)/) ?? '(version unknown)'}` }
  },
  async start() {
    const { pid, url, stop } = await startNginx()
    const request = { method: 'GET', path: '/', headers: {} } as const
    return { pids: [pid], load: async () => ({ url: url.replace(/\/$/, ''), requests: [request] }), stop }
  },
}
