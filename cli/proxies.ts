// The proxies of the environment, which fetch takes by itself.

import type { Failure } from './failures.ts'

type Environment = Readonly<Record<string, string | undefined>>

const here = ['localhost', '127.0.0.1', '::1', '[::1]']

/**
 * The `no_proxy` of this process, which comes before NO_PROXY. A service on this machine is asked without a proxy: that would ask
 * its own machine, and get the key in plain text.
 */
export function directHosts(env: Environment): string {
  const given = env.no_proxy || env.NO_PROXY
  return [...(given ? [given] : []), ...here].join(',')
}

const doubtful: readonly string[] = ['UNREACHABLE', 'TIMED_OUT', 'UNEXPECTED_ANSWER']

/**
 * Names the variable by which a proxy may stand between here and the service, after a failure that may be the proxy's. `env`: its
 * `no_proxy` or NO_PROXY names the hosts that are asked without one.
 */
export function withProxy(failure: Failure, env: Environment, url: string | undefined): Failure {
  if (url === undefined || !doubtful.includes(failure.code)) return failure
  const { protocol, hostname, port } = new URL(url)
  const scheme = protocol.slice(0, -1)
  if (isDirect(hostname, port || default_ports[scheme]!, directHosts(env))) return failure
  const names = [scheme, 'all'].flatMap((kind) => [`${kind}_proxy`, `${kind.toUpperCase()}_PROXY`])
  const name = names.find((each) => env[each])
  if (name === undefined) return failure
  const reason = /^socks/i.test(env[name]!)
    ? `${name} is for SOCKS, which is not used: the service was asked directly.`
    : `${name} is set: its proxy may stand in between.`
  return { ...failure, next: `${failure.next} ${reason}` }
}

const default_ports: Readonly<Record<string, string>> = { http: '80', https: '443' }

/** As fetch reads it: `*`, hosts, and domains with all that is below them, each with or without a port. */
function isDirect(hostname: string, port: string, hosts: string): boolean {
  const names = hosts.split(',').map((host) =>
    host
      .trim()
      .toLowerCase()
      .replace(/^\*?\./, ''),
  )
  return names.some(
    (name) => name === '*' || [hostname, `${hostname}:${port}`].some((own) => `.${own}`.endsWith(`.${name}`)),
  )
}
