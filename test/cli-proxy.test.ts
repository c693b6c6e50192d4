// The CLI as a process whose environment names a proxy.

import { afterAll, expect, test } from 'bun:test'
import { once } from 'node:events'
import http from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { Bench } from './support/cli.ts'
import { forEachService } from './support/service.ts'

const bench = new Bench()
afterAll(() => bench.clean())

forEachService('The CLI and a proxy', (service) => {
  const signUp = async () => ({
    WAYSTATION_URL: service.url,
    WAYSTATION_KEY: (await service.signUp()).api_key,
  })

  test('a service of this machine is asked without the proxy of the environment', async () => {
    const agent = await signUp()
    const proxy = 'http://127.0.0.1:1'
    for (const own of [
      { http_proxy: proxy },
      { HTTP_PROXY: proxy, NO_PROXY: 'x.example' },
      { ALL_PROXY: proxy },
    ]) {
      const { code, stdout } = await bench.run(['kv', 'list', 'state', '--json'], { ...agent, ...own })
      expect([code, JSON.parse(stdout)]).toEqual([0, { items: [], next_cursor: null }])
    }
  })

  test('a failure beyond this machine names the variable of a proxy that may be its reason', async () => {
    const env = { WAYSTATION_URL: 'http://waystation.example', HTTP_PROXY: 'http://127.0.0.1:1' }
    const { code, stderr } = await bench.run(['health', '--retries', '0'], env)
    expect([code, stderr.trim()]).toEqual([
      7,
      expect.stringMatching(/\(ECONNREFUSED\).* HTTP_PROXY is set: its proxy may stand in between\.$/),
    ])
    const direct = await bench.run(['health', '--retries', '0'], {
      ...{ WAYSTATION_URL: 'http://127.0.0.1:1', HTTP_PROXY: 'http://127.0.0.1:1' },
    })
    expect(direct.stderr).not.toContain('HTTP_PROXY')
  })

  test('a proxy that refuses the tunnel is named with its status, and nothing has happened', async () => {
    const proxy = http.createServer().on('connect', (_, socket) => {
      socket.end('HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n')
    })
    proxy.listen(0, '127.0.0.1')
    await once(proxy, 'listening')
    const { code, stderr } = await bench.run(['kv', 'put', 'n', 'k', '1', '--retries', '0'], {
      ...{ WAYSTATION_URL: 'https://waystation.example', WAYSTATION_KEY: 'svc_agt_x' },
      HTTPS_PROXY: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    })
    proxy.close()
    expect([code, stderr.trim()]).toEqual([
      7,
      expect.stringMatching(/\(ERR_PROXY_TUNNEL 407\)\. Next: Is the service .* HTTPS_PROXY is set/),
    ])
  })

  test('a proxy for SOCKS is not used, which a failure says', async () => {
    const listener = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1')
    await once(listener, 'listening')
    let count = 0
    listener.on('connection', () => (count += 1))
    const { port } = listener.address() as AddressInfo
    const { code, stderr } = await bench.run(['health', '--retries', '0'], {
      ...{ WAYSTATION_URL: 'http://127.0.0.2:1', ALL_PROXY: `socks5://127.0.0.1:${port}` },
    })
    listener.close()
    expect([code, count]).toEqual([7, 0])
    expect(stderr).toMatch(/ ALL_PROXY is for SOCKS, which is not used: the service was asked directly\.$/m)
  })
})
